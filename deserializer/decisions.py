"""What to do with each schema id of a micro-batch: decode its rows into the table, or refuse them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from demux.alignment import align
from demux.causes import Cause
from demux.columns import Struct
from demux.errors import SchemaInvalid, SchemaUnknown
from demux.protobuf.compile import CompiledSchema
from demux.protobuf.decoder import decoder_of
from demux.tables import SILVER_RESERVED


@dataclass(frozen=True, slots=True)
class Writer:
    """The schema that rows were written with."""

    descriptor_set: bytes
    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why rows of a schema id are not decoded."""

    cause: Cause
    sentence: str


@dataclass(frozen=True, slots=True)
class Decisions:
    """What to do with the rows of a micro-batch.

    Attributes:
        columns: the table's payload columns, after all that is added for this batch.
        added: dotted paths of the columns that the table does not have yet.
        by_schema_id: what to do with each schema id of the batch (None: a row without one).
    """

    columns: Struct
    added: tuple[str, ...]
    by_schema_id: Mapping[int | None, Writer | Refusal]


Answer = CompiledSchema | SchemaUnknown | SchemaInvalid


def decide(table: Struct, schema_ids: set[int | None], answers: Mapping[int, Answer]) -> Decisions:
    """Return the decisions for a batch, the same whatever the order of its rows.

    Args:
        table: the table's payload columns now; none for a new table.
        schema_ids: the ids that occur in the batch.
        answers: the registry's answer to each id that is not None.
    """
    columns = table
    added: list[str] = []
    by_schema_id: dict[int | None, Writer | Refusal] = {}
    for schema_id in sorted(schema_ids, key=lambda known: _order(known, answers)):
        answer = None if schema_id is None else answers[schema_id]
        match answer:
            case None:
                by_schema_id[schema_id] = Refusal(Cause.UNKNOWN_SCHEMA, "The wrapper has no schema id.")
            case SchemaUnknown():
                by_schema_id[schema_id] = Refusal(Cause.UNKNOWN_SCHEMA, answer.cause)
            case SchemaInvalid():
                by_schema_id[schema_id] = Refusal(Cause.INVALID_SCHEMA, answer.cause)
            case CompiledSchema():
                writer = Writer(answer.descriptor_set, answer.message)
                try:
                    writes = decoder_of(writer.descriptor_set, writer.message, SILVER_RESERVED).columns
                except SchemaInvalid as invalid:
                    by_schema_id[schema_id] = Refusal(Cause.INVALID_SCHEMA, invalid.cause)
                    continue
                alignment = align(columns, writes, SILVER_RESERVED)
                if alignment.conflicts:
                    sentence = "; ".join(alignment.conflicts)
                    by_schema_id[schema_id] = Refusal(
                        Cause.SCHEMA_CONFLICT, f"Schema {schema_id} does not fit the table: {sentence}."
                    )
                    continue
                columns, by_schema_id[schema_id] = alignment.columns, writer
                added += alignment.added
    return Decisions(columns, tuple(added), by_schema_id)


def _order(schema_id: int | None, answers: Mapping[int, Answer]) -> tuple[str, int, int]:
    # older versions first: their names are the ones that the table keeps
    answer = None if schema_id is None else answers[schema_id]
    if isinstance(answer, CompiledSchema):
        return (answer.subject, answer.version, answer.schema_id)
    return ("", 0, schema_id or 0)
