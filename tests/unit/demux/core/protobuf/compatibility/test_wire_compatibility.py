"""Each pair of types and of cardinalities: the verdict, and what `google.protobuf` really does with the bytes."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from demux.core.protobuf.compatibility.changes import ReadEffect, WireCompatibility
from demux.core.protobuf.compatibility.declarations import Declared, declaration
from demux.core.protobuf.compatibility.wire_compatibility import cardinality_reading, type_reading
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from tests.support.data.messages import payloads
from tests.support.data.protos import SCALARS
from tests.support.data.versions import equal, version_of

TYPES = (*SCALARS, "Open", "Closed", "Inner")
NUMERIC = tuple(name for name in TYPES if name not in ("string", "bytes", "Inner"))

# what "Updating A Message Type" says; whatever is not here is incompatible
FINE = """bool>int32 bool>uint32 bool>int64 bool>uint64 int32>int64 uint32>int64 uint32>uint64 sint32>sint64
    string>bytes Open>int32 Open>int64 Closed>int32 Closed>int64"""
LOSS = """int32>bool int32>uint32 int32>uint64 uint32>bool uint32>int32 int64>bool int64>int32 int64>uint32
    int64>uint64 uint64>bool uint64>int32 uint64>uint32 uint64>int64 sint64>sint32 bytes>string
    fixed32>sfixed32 sfixed32>fixed32 fixed64>sfixed64 sfixed64>fixed64
    Open>bool Open>uint32 Open>uint64 Closed>bool Closed>uint32 Closed>uint64
    bool>Open int32>Open uint32>Open int64>Open uint64>Open
    bool>Closed int32>Closed uint32>Closed int64>Closed uint64>Closed Inner>bytes bytes>Inner"""


def verdict(writer: str, reader: str) -> WireCompatibility:
    pair = f"{writer}>{reader}"
    # two enums are compared value by value, by a rule of their own
    if writer == reader or pair in ("Open>Closed", "Closed>Open") or pair in FINE.split():
        return WireCompatibility.COMPATIBLE
    return WireCompatibility.LOSS if pair in LOSS.split() else WireCompatibility.INCOMPATIBLE


@cache
def pool() -> DescriptorPool:
    """Messages of one field: single (`s_int32`), packed (`p_int32`), expanded (`e_int32`)."""
    parts = ["enum Open { NIL = 0; SOME = 7; } message Inner { string text = 1; }"]
    parts += ["enum Closed { option features.enum_type = CLOSED; NO = 0; YES = 7; }"]
    parts += [f"message s_{name} {{ {name} f = 1; }}" for name in TYPES]
    parts += [f"message p_{name} {{ repeated {name} f = 1; }}" for name in TYPES]
    expanded = "[features.repeated_field_encoding = EXPANDED]"
    parts += [f"message e_{name} {{ repeated {name} f = 1 {expanded}; }}" for name in NUMERIC]
    return pool_of(FileDescriptorSet.FromString(version_of("\n".join(parts), syntax="2023").descriptor_set))


@cache
def cls(name: str) -> type[Message]:
    return message_class(pool(), f"t.{name}")


def field(name: str) -> Declared:
    descriptor: Any = cls(name).DESCRIPTOR
    return declaration(descriptor).fields[1]


def outcomes(writer: str, reader: str) -> set[bool]:
    """Whether each of many values arrives as it was; refused counts as not."""
    found = set()
    for payload in payloads(cls(writer), 7, 200):
        if not payload:
            continue
        written = cls(writer).FromString(payload)
        try:
            found.add(equal(written, cls(reader).FromString(payload)))
        except DecodeError:
            found.add(False)
    return found


def reading(writer: str, reader: str) -> ReadEffect:
    return type_reading(field(writer), field(reader))


@pytest.mark.parametrize(("writer", "reader"), list(product(TYPES, TYPES)))
def test_a_type_is_read_as_the_page_says(writer: str, reader: str) -> None:
    assert reading(f"s_{writer}", f"s_{reader}").wire is verdict(writer, reader)


@pytest.mark.parametrize(("writer", "reader"), list(product(SCALARS, SCALARS)))
def test_the_verdict_on_a_type_is_what_the_parser_does(writer: str, reader: str) -> None:
    happened = outcomes(f"s_{writer}", f"s_{reader}")
    match reading(f"s_{writer}", f"s_{reader}").wire:
        case WireCompatibility.COMPATIBLE:
            assert happened == {True}
        case WireCompatibility.LOSS:
            assert happened == {True, False}
        case WireCompatibility.INCOMPATIBLE:
            assert False in happened


@pytest.mark.parametrize("writer", ["Open", "Closed"])
@pytest.mark.parametrize("reader", ["int32", "int64"])
def test_the_number_of_an_enum_value_arrives(writer: str, reader: str) -> None:
    assert outcomes(f"s_{writer}", f"s_{reader}") == {True}


def test_a_closed_enum_loses_numbers_and_an_open_one_keeps_them() -> None:
    assert outcomes("s_int32", "s_Closed") == {True, False}
    assert outcomes("s_int32", "s_Open") == {True}


@pytest.mark.parametrize("name", TYPES)
def test_a_single_value_is_read_as_a_list_of_one(name: str) -> None:
    assert cardinality_reading(field(f"s_{name}"), field(f"p_{name}")).wire is WireCompatibility.COMPATIBLE
    assert outcomes(f"s_{name}", f"p_{name}") == {True}


@pytest.mark.parametrize("name", NUMERIC)
def test_a_packed_list_is_never_read_as_a_single_value(name: str) -> None:
    assert cardinality_reading(field(f"p_{name}"), field(f"s_{name}")).wire is WireCompatibility.INCOMPATIBLE
    assert outcomes(f"p_{name}", f"s_{name}") == {False}


@pytest.mark.parametrize("name", TYPES)
def test_of_a_list_that_is_not_packed_one_value_is_kept(name: str) -> None:
    writer = f"e_{name}" if name in NUMERIC else f"p_{name}"
    assert cardinality_reading(field(writer), field(f"s_{name}")).wire is WireCompatibility.LOSS
    assert outcomes(writer, f"s_{name}") == {True, False}


@pytest.mark.parametrize("name", NUMERIC)
def test_a_packed_list_and_an_expanded_one_are_the_same(name: str) -> None:
    assert outcomes(f"p_{name}", f"e_{name}") == outcomes(f"e_{name}", f"p_{name}") == {True}


def test_a_message_in_a_group_is_not_read_as_one_behind_a_length() -> None:
    one = "message M { Inner f = 1; } message Inner { int32 x = 1; }"
    other = one.replace("= 1; } message", "= 1 [features.message_encoding = DELIMITED]; } message")
    behind, grouped = (
        pool_of(FileDescriptorSet.FromString(version_of(text, syntax="2023").descriptor_set)) for text in (one, other)
    )
    first, second = (declaration(made.FindMessageTypeByName("t.M")).fields[1] for made in (behind, grouped))
    assert (first.text, second.text) == ("t.Inner", "group t.Inner")
    assert type_reading(first, second) == ReadEffect(
        WireCompatibility.INCOMPATIBLE, "t.Inner is not read as group t.Inner"
    )
    written: Any = message_class(behind, "t.M")()
    written.f.x = 5
    read: Any = message_class(grouped, "t.M").FromString(written.SerializeToString())
    assert not read.HasField("f")
