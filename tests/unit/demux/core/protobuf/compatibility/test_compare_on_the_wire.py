"""A verdict is a promise about bytes: random payloads of one version, read by the other."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demux.core.columns.schema_merge import align
from demux.core.protobuf.compatibility.changes import ChangeKind, Direction, Effect, SchemaComparison, WireCompatibility
from demux.core.protobuf.compatibility.compare import compare, silver_columns, table_of
from demux.core.protobuf.schema.descriptor_pool import is_repeated, message_class, pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.tables import SILVER_RESERVED
from tests.support.data.messages import payloads, serialized
from tests.support.data.versions import equal, pairs

Pair = tuple[CompiledSchema, CompiledSchema]

LARGE = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def class_of(schema: CompiledSchema) -> type[Message]:
    return message_class(pool_of(FileDescriptorSet.FromString(schema.descriptor_set)), schema.message)


def careful_fields(comparison: SchemaComparison) -> set[str]:
    """The top-level fields for which the newer reader does not promise every value."""
    return {c.path.partition(".")[0] for c in comparison.changes if c.backward.wire is not WireCompatibility.COMPATIBLE}


def only_promised(payload: bytes, old: type[Message], new: type[Message], comparison: SchemaComparison) -> bytes:
    """The payload without the fields that are not promised."""
    message, now = old.FromString(payload), new.DESCRIPTOR
    assert now is not None
    careful = careful_fields(comparison)
    for field, _ in message.ListFields():
        later = now.fields_by_number.get(field.number)
        if (field if later is None else later).name in careful:
            message.ClearField(field.name)
    if careful:
        without_roots(message)
    return message.SerializePartialToString()


def without_roots(message: Message) -> None:
    """Take out the messages of the outermost type: what changed in it is told once, at the top."""
    for field, value in message.ListFields():
        inner = field.message_type
        if inner is None:
            continue
        if inner.GetOptions().map_entry:
            inner = inner.fields_by_number[2].message_type
            value = value.values() if inner is not None else ()
        elif not is_repeated(field):
            value = [value]
        if inner is not None and inner.full_name == "v.Root":
            message.ClearField(field.name)
            continue
        for one in value:
            without_roots(one)


@pytest.mark.thorough
@LARGE
@given(pairs(), st.integers(0, 2**32))
def test_what_is_compatible_reads_every_value_as_it_was_written(pair: Pair, seed: int) -> None:
    old, new = pair
    comparison = compare(old, new)
    writer, reader = class_of(old), class_of(new)
    for payload in payloads(writer, seed, 5):
        promised = only_promised(payload, writer, reader, comparison)
        read = reader()
        read.MergeFromString(promised)
        written: Any = writer()
        written.MergeFromString(promised)
        assert equal(written, read)


@pytest.mark.thorough
@LARGE
@given(pairs(), st.integers(0, 2**32))
def test_a_reader_that_is_never_incompatible_accepts_every_message(pair: Pair, seed: int) -> None:
    old, new = pair
    lossless = all(c.backward.wire is WireCompatibility.COMPATIBLE for c in compare(old, new).changes)
    if not lossless:
        return
    reader = class_of(new)
    for payload in payloads(class_of(old), seed, 5):
        read = reader.FromString(payload)
        assert read.IsInitialized()
        assert reader.FromString(serialized(read)) is not None


@pytest.mark.thorough
@LARGE
@given(pairs())
def test_forward_is_backward_with_the_versions_exchanged(pair: Pair) -> None:
    old, new = pair
    there, back = compare(old, new), compare(new, old)
    forward = sorted((c.number, c.forward.wire.value) for c in there.changes)
    assert forward == sorted((c.number, c.backward.wire.value) for c in back.changes) or _renumbered(there, back)
    for direction, other in ((Direction.BACKWARD, Direction.FORWARD), (Direction.FORWARD, Direction.BACKWARD)):
        refused = any(direction in change.refused for change in there.changes)
        assert refused == any(other in change.refused for change in back.changes)


def _renumbered(*comparisons: SchemaComparison) -> bool:
    # a field that moved to another number is told under its new one
    return any(c.kind is ChangeKind.NUMBER_CHANGED for one in comparisons for c in one.changes)


@pytest.mark.thorough
@LARGE
@given(pairs())
def test_the_silver_table_does_what_alignment_does(pair: Pair) -> None:
    old, new = pair
    comparison = compare(old, new)
    done = align(silver_columns(old), silver_columns(new), SILVER_RESERVED)
    assert (comparison.added, comparison.conflicts) == (done.added, done.conflicts)
    effects = [change.effect for change in comparison.changes]
    if Effect.CONFLICT in effects:
        assert done.conflicts
    if not done.conflicts:
        added = sum(effect is Effect.ADDS_COLUMN for effect in effects)
        assert added == len(done.added)


@given(pairs())
def test_a_version_differs_from_itself_in_nothing(pair: Pair) -> None:
    for schema in pair:
        same = compare(schema, schema)
        assert same == SchemaComparison((), (), ())
        assert not same.breaks


@given(pairs())
def test_the_older_version_is_all_that_a_table_needs_to_know_it(pair: Pair) -> None:
    old, new = pair
    assert table_of([old]) == silver_columns(old)
    assert compare(old, new, table_of([old])) == compare(old, new)
    assert compare(old, old, table_of(pair)).conflicts == ()
