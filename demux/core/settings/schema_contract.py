"""What a game's table does with a schema that would change it, by the settings and by what was approved. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SchemaChanges(Enum):
    """What a table does with a schema that would add a column or make one wider."""

    EVOLVE = "evolve"
    FREEZE = "freeze"
    ASK = "ask"


class Frozen(Enum):
    """What becomes of rows that have more than a frozen table has columns for."""

    QUARANTINE = "quarantine"
    RESCUE = "rescue"


@dataclass(frozen=True, slots=True)
class Contract:
    """What one game's table does with changed schemas.

    Attributes:
        mode: see `SchemaChanges`.
        frozen: see `Frozen`; counts in mode FREEZE.
        approved: ids of the schemas, in the game's registry, that a person has approved; they count in mode ASK.
        game: whose it is, by its exact name, for messages.
    """

    mode: SchemaChanges = SchemaChanges.EVOLVE
    frozen: Frozen = Frozen.QUARANTINE
    approved: frozenset[int] = frozenset()
    game: str = ""


EVOLVE = Contract()
