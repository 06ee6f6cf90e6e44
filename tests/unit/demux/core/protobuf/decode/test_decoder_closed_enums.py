"""Numbers of closed enums without a name, in every position: rows as by `google.protobuf`, and nothing is lost."""

from __future__ import annotations

from typing import Any

import google.protobuf
import pytest

from demux.core.protobuf.decode.decoder import PayloadDecoder, decoder_of
from demux.core.protobuf.decode.rescue_fill import RescueFill
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import ImportedFile, RegisteredSchema
from tests.support.data.mutations import VARINT, Element, delimited, varint, written
from tests.support.data.protos import CLOSED, CLOSED_2023, Schema, compiled, message_type, of_text
from tests.support.oracle import arrow_rows, difference, oracle_row

SCHEMAS = [(CLOSED, "closed"), (CLOSED_2023, "closed2023")]
NOTHING: frozenset[str] = frozenset()


def number(field: int, value: int) -> Element:
    return Element(field, VARINT, varint(value % 2**64))


def entry(value: int) -> Element:
    return delimited(6, b"\x0a\x01k" + number(2, value).written())


# what is sent, the columns that it fills, and what is left over
POSITIONS: dict[str, tuple[list[Element], dict[str, Any], list[Element]]] = {
    "alone": ([number(1, 99)], {"one": None}, [number(1, 99)]),
    "negative": ([number(1, -6)], {"one": None}, [number(1, -6)]),
    "after a name": ([number(1, 2), number(1, 99)], {"one": "TWO"}, [number(1, 99)]),
    "before a name": ([number(1, 99), number(1, 2)], {"one": "TWO"}, [number(1, 99)]),
    "cut to 32 bits": ([number(1, 2**32 + 1)], {"one": "ONE"}, []),
    "in a list": ([number(2, n) for n in (1, 99, 2)], {"many": ["ONE", "TWO"]}, [number(2, 99)]),
    "in a packed list": ([delimited(3, b"\x01\x63\x02")], {"packed": ["ONE", "TWO"]}, [number(3, 99)]),
    "packed where it is not": ([delimited(2, b"\x63\x02")], {"many": ["TWO"]}, [number(2, 99)]),
    "alone where it is packed": ([number(3, 99), number(3, 1)], {"packed": ["ONE"]}, [number(3, 99)]),
    "in a oneof": (
        [delimited(4, b"x"), number(5, 99)],
        {"text": "x", "chosen": None},
        [number(5, 99)],
    ),
    "in a oneof, alone": ([number(5, 99)], {"text": None, "chosen": None}, [number(5, 99)]),
    "in a map": ([entry(99)], {"by_name": []}, [entry(99)]),
    "in a map, key behind": (
        [delimited(6, b"\x10\x63\x0a\x01k")],
        {"by_name": []},
        [entry(99)],
    ),
    "in a map, key twice": ([entry(7), entry(99)], {"by_name": [("k", "SOME")]}, [entry(99)]),
    "in a map, value twice": (
        [delimited(6, b"\x0a\x01k\x10\x63\x10\x07")],
        {"by_name": []},
        [delimited(6, b"\x0a\x01k\x10\x07\x10\x63")],
    ),
    "with a default": ([number(7, 99)], {"standard": None}, [number(7, 99)]),
    "in a message": ([delimited(8, b"\x08\x63")], {"inner": {"one": None}}, [delimited(8, b"\x08\x63")]),
    "in a list of messages": (
        [delimited(9, b"\x08\x01"), delimited(9, b"\x08\x63")],
        {"inners": [{"one": "ONE"}, {"one": None}]},
        [delimited(9, b""), delimited(9, b"\x08\x63")],
    ),
    "in a map of messages": (
        [delimited(10, b"\x08\x05\x12\x02\x08\x63")],
        {"inner_by_id": [(5, {"one": None})]},
        [delimited(10, b"\x08\x05\x12\x02\x08\x63")],
    ),
    "in JSON text": ([delimited(11, b"\x08\x63")], {"again": "{}"}, [delimited(11, b"\x08\x63")]),
    "in an extension": ([number(100, 99)], {"{}_extra": None}, [number(100, 99)]),
    "in an extension's list": (
        [delimited(101, b"\x01\x63")],
        {"{}_extras": ["ONE"]},
        [number(101, 99)],
    ),
}
if google.protobuf.__version__ < "6":
    # it cuts a negative number to 32 bits, and calls an extension set, to 0, whose number has no name
    POSITIONS["negative"] = ([number(1, -6)], {"one": None}, [number(1, 2**32 - 6)])
    POSITIONS["in an extension"] = ([number(100, 99)], {"{}_extra": "0"}, [number(100, 99)])


@pytest.mark.parametrize(("schema", "package"), SCHEMAS, ids=str)
@pytest.mark.parametrize("position", POSITIONS)
def test_a_number_without_a_name_is_an_unknown_field(schema: Schema, package: str, position: str) -> None:
    parts, columns, left = POSITIONS[position]
    cls: Any = message_type(schema, f"{package}.Every")
    by = decoder_of(compiled(schema), f"{package}.Every")
    # a batch that is large enough for the quick look, and stays worth it
    ordinary = written([number(1, 2), delimited(3, b"\x01\x02"), entry(7), delimited(8, b"\x08\x01")])
    sent = [*[ordinary] * 30, written(parts), *[ordinary] * 30]
    decoded = by.decode(sent)
    assert decoded.bad == ()
    at = list(decoded.good).index(30)
    row = arrow_rows(decoded.columns, [column.name for column in by.columns])[at]
    assert difference(oracle_row(cls.FromString(written(parts)), cls.DESCRIPTOR), row) is None
    assert {name: row[name] for name in (each.format(package) for each in columns)} == {
        name.format(package): value for name, value in columns.items()
    }
    assert by.rescued(sent, decoded, by.columns)[at].as_py() == (written(left) or None)


@pytest.mark.parametrize(("schema", "package"), SCHEMAS, ids=str)
def test_a_required_enum_whose_number_has_no_name_is_missing(schema: Schema, package: str) -> None:
    by = decoder_of(compiled(schema), f"{package}.Must")
    decoded = by.decode([written([number(1, 99)]), written([number(1, 99), number(1, 2)])])
    assert decoded.bad == ((0, f"Message '{package}.Must' is missing required fields: must"),)
    assert by.rescued([b"", written([number(1, 99), number(1, 2)])], decoded, by.columns).to_pylist() == [b"\x08\x63"]


@pytest.mark.parametrize(("schema", "package"), SCHEMAS, ids=str)
def test_a_closed_enum_of_another_wire_type_is_refused_as_any_field(schema: Schema, package: str) -> None:
    by = decoder_of(compiled(schema), f"{package}.Every")
    ((_, sentence),) = by.decode([delimited(1, b"\x63").written()]).bad
    assert sentence == f"Field 1 (one) of '{package}.Every' has the wrong wire type: length-delimited"


@pytest.mark.parametrize(
    ("head", "feature", "user", "shown"),
    [
        ('syntax = "proto2";', "", 'syntax = "proto2";', None),
        ('syntax = "proto2";', "", 'edition = "2023";', None),
        ('syntax = "proto3";', "", 'syntax = "proto2";', "99"),
        ('syntax = "proto3";', "", 'syntax = "proto3";', "99"),
        ('edition = "2023";', "", 'syntax = "proto3";', "99"),
        ('edition = "2023"; option features.enum_type = CLOSED;', "", 'edition = "2023";', None),
        ('edition = "2023";', "option features.enum_type = CLOSED;", 'syntax = "proto2";', None),
        (
            'edition = "2023"; option features.enum_type = CLOSED;',
            "option features.enum_type = OPEN;",
            'syntax = "proto3";',
            "99",
        ),
    ],
)
def test_the_file_that_declares_an_enum_says_whether_it_is_closed(
    head: str, feature: str, user: str, shown: str | None
) -> None:
    declared = f"{head} enum E {{ {feature} A = 0; }}"
    label = "" if "edition" in user else "optional"
    text = f'{user} import "e.proto"; message M {{ {label} E one = 1; }}'
    schema = RegisteredSchema(1, "m", 1, text, "m.proto", (ImportedFile("e.proto", declared),), "M")
    by = decoder_of(compile_schema(schema).descriptor_set, "M")
    decoded = by.decode([b"\x08\x63"])
    assert decoded.columns[0].to_pylist() == [shown]
    assert by.rescued([b"\x08\x63"], decoded, by.columns).to_pylist() == [None if shown else b"\x08\x63"]


OLD = """message M { optional C one = 1; repeated C many = 2; oneof choice { string text = 4; C chosen = 5; }
  map<string, C> by_name = 6; optional In inner = 8; repeated In inners = 9; map<uint64, In> by_id = 10; }
message In { optional C one = 1; map<string, C> by_name = 6; } enum C { NIL = 0; ONE = 1; }"""
NEW = OLD.replace("ONE = 1;", "ONE = 1; LATER = 99;")


def versions() -> tuple[PayloadDecoder, RescueFill]:
    (old, name, _), (new, _, _) = (of_text(text, "t.M", "proto2") for text in (OLD, NEW))
    return decoder_of(old, name), RescueFill(new, name, NOTHING)


@pytest.mark.parametrize(
    ("parts", "filled", "kept"),
    [
        ([number(1, 99)], {"one": "LATER"}, []),
        ([number(1, 1), number(1, 99)], {"one": "ONE"}, [number(1, 99)]),
        ([number(2, 99), number(2, 99)], {"many": ["LATER", "LATER"]}, []),
        ([number(2, 99), number(2, 98)], {"many": ["LATER"]}, [number(2, 98)]),
        ([number(2, 99), number(2, 1)], {"many": ["ONE"]}, [number(2, 99)]),
        ([number(5, 99)], {"chosen": "LATER"}, []),
        ([delimited(4, b"x"), number(5, 99)], {"text": "x", "chosen": None}, [number(5, 99)]),
        ([entry(99)], {"by_name": [("k", "LATER")]}, []),
        ([entry(98)], {"by_name": []}, [entry(98)]),
        ([entry(1), entry(99)], {"by_name": [("k", "ONE")]}, [entry(99)]),
        (
            [delimited(6, b"\x0a\x01a\x10\x01"), entry(99)],
            {"by_name": [("a", "ONE"), ("k", "LATER")]},
            [],
        ),
        (
            [delimited(8, b"\x08\x63" + entry(99).written())],
            {"inner": {"one": "LATER", "by_name": [("k", "LATER")]}},
            [],
        ),
        (
            [delimited(9, b""), delimited(9, b"\x08\x63")],
            {"inners": [{"one": None, "by_name": []}, {"one": "LATER", "by_name": []}]},
            [],
        ),
        (
            [delimited(10, b"\x08\x05\x12\x02\x08\x63")],
            {"by_id": [(5, {"one": "LATER", "by_name": []})]},
            [],
        ),
    ],
    ids=lambda value: written(value).hex() if isinstance(value, list) else None,
)
def test_a_number_that_gets_a_name_later_is_filled_in_where_its_place_is_free(
    parts: list[Element], filled: dict[str, Any], kept: list[Element]
) -> None:
    old, filling = versions()
    decoded = old.decode([written(parts)])
    (row,) = arrow_rows(decoded.columns, [column.name for column in old.columns])
    leftover = old.leftover(written(parts), old.columns)
    assert leftover is not None
    done, rest = filling.filled(row, leftover, old.columns)
    assert done == row | filled
    assert rest == (written(kept) or None)
    if rest is not None:
        assert filling.filled(done, rest, old.columns) == (done, rest)


@pytest.mark.parametrize("text", ["map<string, int32> m = 1;", "map<string, In> m = 1;"])
def test_an_entry_with_an_unknown_field_is_left_over_as_a_whole(text: str) -> None:
    descriptor_set, name, message = of_text(f"message M {{ {text} }} message In {{ int32 x = 1; }}")
    cls: Any = message
    value = b"\x12\x02\x08\x05" if "In" in text else b"\x10\x05"
    payload = delimited(1, b"\x0a\x01k" + value + b"\x18\x07").written()
    by = decoder_of(descriptor_set, name)
    decoded = by.decode([payload])
    # google.protobuf does not take it into the map
    assert len(cls.FromString(payload).m) == 0
    assert decoded.columns[0].to_pylist() == [[]]
    assert by.rescued([payload], decoded, by.columns).to_pylist() == [payload]
