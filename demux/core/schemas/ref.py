"""Which schema and which of its messages a payload was written with, as its bronze row says it. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaRef:
    """The bronze columns that decide how a payload is decoded.

    Attributes:
        schema_id: the id in the game's registry; None where the row has none.
        guid: the registry's globally unique id, lower-case with hyphens; where it is there it decides.
        message_indexes: the way to the message from the top of the file, such as `1,0` for the first message inside the
            second; None where the row does not say.
    """

    schema_id: int | None
    guid: str | None = None
    message_indexes: str | None = None
