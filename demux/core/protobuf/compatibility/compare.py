"""Two versions of a message, compared field by field: on the wire, for a registry, and for the silver table. Pure.

On the wire the rules of https://protobuf.dev/programming-guides/proto3/#updating hold (`wire_compatibility`).
A registry refuses what Confluent's "Schema Evolution and Compatibility for Schema Registry" lists for Protobuf
(https://docs.confluent.io/platform/current/schema-registry/fundamentals/schema-evolution.html), which is stricter in
some places; other registries may differ. The silver table does what `demux.core.columns.schema_merge` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.columns.schema_merge import align
from demux.core.columns.types import Struct
from demux.core.errors import SchemaInvalid
from demux.core.protobuf.compatibility.changes import ChangeKind, Effect, SchemaChange, SchemaComparison
from demux.core.protobuf.compatibility.declarations import Declaration, Declared, declaration
from demux.core.protobuf.compatibility.field_changes import (
    BOTH,
    NEITHER,
    addition,
    change,
    enum_changes,
    is_reused,
    local_name,
    message_reserved_changes,
    moved_fields,
    of_field,
    removal,
    renumbering,
    reuse,
)
from demux.core.protobuf.compatibility.table_impact import Numbers, TableFit
from demux.core.protobuf.schema.column_mapping import MAX_COLUMNS, FieldPresence, columns_of, shape_of
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.tables import SILVER_RESERVED


def compare(old: CompiledSchema, new: CompiledSchema, table: Struct | None = None) -> SchemaComparison:
    """Return all changes between two versions, and the effect of the newer one on the game's table.

    Args:
        table: the table's payload columns before the newer one; None = as the older version alone makes them.

    Raises:
        SchemaInvalid: a version cannot be used, or they unfold into more than `MAX_COLUMNS` fields to compare.
    """
    silver = TableFit(silver_columns(old) if table is None else table, silver_columns(new), SILVER_RESERVED)
    changes = tuple(_MessageWalk(silver).roots(_descriptor(old), _descriptor(new)))
    return SchemaComparison(changes, silver.alignment.added, silver.alignment.conflicts, silver.alignment.widened)


def silver_columns(schema: CompiledSchema) -> Struct:
    """Return the payload columns that the schema alone gives a silver table.

    Raises:
        SchemaInvalid: the schema cannot be used.
    """
    return columns_of(shape_of(_descriptor(schema), SILVER_RESERVED))


def table_of(schemas: Iterable[CompiledSchema]) -> Struct:
    """Return the payload columns of a table that took rows of all these versions in this order.

    A version that does not fit, or cannot be used, changes nothing: its rows are in quarantine.
    """
    table = Struct(())
    for schema in schemas:
        try:
            table = align(table, silver_columns(schema), SILVER_RESERVED).columns
        except SchemaInvalid:
            continue
    return table


class _MessageWalk:
    """Walks both messages side by side; a pair of types met inside itself ends the walk."""

    def __init__(self, silver: TableFit) -> None:
        self._silver = silver
        self._fields = 0

    def roots(self, old: Descriptor, new: Descriptor) -> Iterator[SchemaChange]:
        if old.full_name != new.full_name:
            refused = NEITHER if local_name(old) == local_name(new) else BOTH
            yield change("", 0, ChangeKind.MESSAGE_TYPE_CHANGED, old.full_name, new.full_name, refused=refused)
        yield from self._messages(old, new, "", (), frozenset())

    def _messages(
        self, old: Descriptor, new: Descriptor, path: str, numbers: Numbers, above: frozenset[tuple[str, str]]
    ) -> Iterator[SchemaChange]:
        pair = (old.full_name, new.full_name)
        if pair in above or (old.full_name == new.full_name and old.full_name.startswith("google.protobuf.")):
            return
        was, now = declaration(old), declaration(new)
        elsewhere = moved_fields(was, now)
        for number in sorted(was.fields.keys() | now.fields.keys()):
            self._count()
            at = (*numbers, number)
            if number in was.fields and number in now.fields:
                yield from self._kept(was, now, path, at)
                yield from self._inside(was.fields[number], now.fields[number], path, at, above | {pair})
            else:
                yield from self._removed_or_added(was, now, elsewhere, path, at)
        yield from message_reserved_changes(was, now, path.rstrip("."))

    def _kept(self, was: Declaration, now: Declaration, path: str, at: Numbers) -> Iterator[SchemaChange]:
        number = at[-1]
        before, after = was.fields[number], now.fields[number]
        here = path + after.name
        if is_reused(number, was, now):
            yield self._on_column(reuse(number, was, now, here), at)
            return
        for one in of_field(number, was, now, here):
            yield self._on_values(one, at, _unset(before, after))
        if before.enum is not None and after.enum is not None:
            for one in enum_changes(before.enum, after.enum, here, number):
                yield self._on_values(one, at, "")

    def _inside(
        self, before: Declared, after: Declared, path: str, at: Numbers, above: frozenset[tuple[str, str]]
    ) -> Iterator[SchemaChange]:
        if before.message is not None and after.message is not None:
            yield from self._messages(before.message, after.message, f"{path}{after.name}.", at, above)

    def _removed_or_added(
        self, was: Declaration, now: Declaration, elsewhere: Mapping[str, int], path: str, at: Numbers
    ) -> Iterator[SchemaChange]:
        number = at[-1]
        if number in was.fields:
            gone = was.fields[number]
            if gone.name not in elsewhere:
                yield self._on_column(removal(gone, was, now, path), at)
            return
        new = now.fields[number]
        if new.name not in elsewhere:
            yield self._on_column(addition(new, was, now, path), at)
            return
        before = was.fields[elsewhere[new.name]]
        _, stays = self._silver.of_field((*at[:-1], before.number))
        one = self._on_column(renumbering(before, new, path), at)
        yield replace(one, silver="; ".join(filter(None, (one.silver, stays))))

    def _on_column(self, one: SchemaChange, numbers: Numbers) -> SchemaChange:
        effect, sentence = self._silver.of_field(numbers)
        return replace(one, effect=effect, silver=sentence)

    def _on_values(self, one: SchemaChange, numbers: Numbers, unset: str) -> SchemaChange:
        effect, sentence = Effect.NONE, ""
        match one.kind:
            case ChangeKind.PRESENCE_CHANGED | ChangeKind.MOVED_INTO_ONEOF | ChangeKind.MOVED_OUT_OF_ONEOF:
                effect, sentence = self._silver.of_values(numbers, unset)
            case ChangeKind.ENUM_VALUE_RENAMED:
                effect, sentence = self._silver.of_values(numbers, f"column {{column}} says {one.new}, not {one.old}")
            case ChangeKind.JSON_NAME_CHANGED:
                effect, sentence = self._silver.of_values(numbers, "")
            case (
                ChangeKind.FIELD_RENAMED
                | ChangeKind.TYPE_CHANGED
                | ChangeKind.MESSAGE_TYPE_CHANGED
                | ChangeKind.ENCODING_CHANGED
                | ChangeKind.CARDINALITY_CHANGED
                | ChangeKind.MAP_CHANGED
            ):
                effect, sentence = self._silver.of_field(numbers)
        return replace(one, effect=effect, silver=sentence)

    def _count(self) -> None:
        self._fields += 1
        if self._fields > MAX_COLUMNS:
            raise SchemaInvalid(
                f"The two versions unfold into more than {MAX_COLUMNS} fields to compare.", "Compare smaller messages."
            )


def _descriptor(schema: CompiledSchema) -> Descriptor:
    pool = pool_of(FileDescriptorSet.FromString(schema.descriptor_set))
    descriptor: Descriptor = pool.FindMessageTypeByName(schema.message)
    return descriptor


def _unset(before: Declared, after: Declared) -> str:
    """Return a clause on the new value of an unset field, `{column}` for its path; empty where it is the same."""
    match before.presence is FieldPresence.IMPLICIT, after.presence is FieldPresence.IMPLICIT:
        case True, False:
            return "column {column} is NULL where the field is unset, no longer the default"
        case False, True:
            return "column {column} holds the default where the field is unset, no longer NULL"
    return ""
