"""The differences between two versions of a message: a `SchemaChange` each, in a `SchemaComparison`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class WireCompatibility(Enum):
    """The result of reading with one version the bytes of the other; from best to worst."""

    COMPATIBLE = "compatible"
    LOSS = "compatible-with-loss"
    INCOMPATIBLE = "incompatible"


class Direction(Enum):
    """The direction of compatibility; the value is the registry's word for it."""

    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"


class Mode(Enum):
    """A compatibility mode of a Confluent-compatible registry, between two versions."""

    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"
    NONE = "NONE"


class ChangeKind(Enum):
    """The kind of a change; the value is its name in messages."""

    FIELD_ADDED = "added"
    FIELD_REMOVED = "removed"
    FIELD_RENAMED = "renamed"
    NUMBER_CHANGED = "number changed"
    NUMBER_REUSED = "number reused"
    TYPE_CHANGED = "type changed"
    MESSAGE_TYPE_CHANGED = "message type changed"
    ENCODING_CHANGED = "message encoding changed"
    CARDINALITY_CHANGED = "cardinality changed"
    MAP_CHANGED = "map and list exchanged"
    MOVED_INTO_ONEOF = "moved into a oneof"
    MOVED_OUT_OF_ONEOF = "moved out of a oneof"
    ONEOF_CHANGED = "oneof changed"
    PRESENCE_CHANGED = "presence changed"
    DEFAULT_CHANGED = "default changed"
    PACKED_CHANGED = "packing changed"
    JSON_NAME_CHANGED = "JSON name changed"
    ENUM_VALUE_ADDED = "enum value added"
    ENUM_VALUE_REMOVED = "enum value removed"
    ENUM_VALUE_RENAMED = "enum value renamed"
    ENUM_VALUE_NUMBER_CHANGED = "enum value's number changed"
    ENUM_OPENNESS_CHANGED = "enum opened or closed"
    RESERVED_ADDED = "reserved"
    RESERVED_REMOVED = "no longer reserved"


class Effect(Enum):
    """The effect of a change on the game's silver table."""

    NONE = "none"
    ADDS_COLUMN = "adds-column"
    STOPS_FILLING = "stops-filling"
    KEEPS_OLD_NAME = "keeps-old-name"
    WIDER_COLUMN = "wider-column"
    WIDENS_COLUMN = "widens-column"
    OTHER_VALUES = "other-values"
    CONFLICT = "SCHEMA_CONFLICT"


@dataclass(frozen=True, slots=True)
class ReadEffect:
    """Whether a reader reads a writer's bytes, and why not; no reason where nothing is lost."""

    wire: WireCompatibility
    why: str = ""


FINE = ReadEffect(WireCompatibility.COMPATIBLE)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference.

    Attributes:
        path: the field, dotted, by the newer names; `key` and `value` inside a map; empty for the message itself.
        number: the field's number in the newer version, in the older where it is gone; 0 for a message.
        old: that part as text, in the older version; None where it has none.
        backward: the newer version reads what the older wrote.
        forward: the older version reads what the newer writes.
        refused: the directions in which a Confluent registry refuses the newer version for this change.
        silver: the same as a sentence, without a full stop; empty where it does nothing.
    """

    path: str
    number: int
    kind: ChangeKind
    old: str | None
    new: str | None
    backward: ReadEffect
    forward: ReadEffect
    refused: frozenset[Direction]
    effect: Effect
    silver: str

    @property
    def wire(self) -> WireCompatibility:
        """The worse of both directions."""
        return worst(self.backward, self.forward).wire


@dataclass(frozen=True, slots=True)
class SchemaComparison:
    """All changes between two versions, and the effect of the newer one on the silver table.

    Attributes:
        changes: by field number, nested ones behind the field that holds them.
        added: dotted paths of the columns that the table gets.
        conflicts: why no row of the newer version can be written; each such row goes to quarantine, SCHEMA_CONFLICT.
        widened: dotted paths of the columns that become wider, for which the table is rewritten.
    """

    changes: tuple[SchemaChange, ...]
    added: tuple[str, ...]
    conflicts: tuple[str, ...]
    widened: tuple[str, ...] = ()

    @property
    def breaks(self) -> bool:
        """Whether rows of the newer version end in quarantine, or one version cannot read the other's bytes."""
        return bool(self.conflicts) or any(change.wire is WireCompatibility.INCOMPATIBLE for change in self.changes)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The compatibility modes in which a Confluent registry accepts the newer version."""
        refused = frozenset[Direction]().union(*(change.refused for change in self.changes))
        held = [Mode(direction.value) for direction in Direction if direction not in refused]
        return (*held, *((Mode.FULL,) if not refused else ()), Mode.NONE)


def worst(*readings: ReadEffect) -> ReadEffect:
    """Return the reading that loses most, the first one of several."""
    order = list(WireCompatibility)
    return max(readings, key=lambda reading: order.index(reading.wire), default=FINE)
