"""Columns to payloads: what was decoded comes back as the same message, in the bytes of google.protobuf."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.columns.arrow import arrow_type
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.encode.encoder import EncodedBatch, PayloadEncoder, encoder_of
from tests.support.data.messages import payloads
from tests.support.data.protos import CASES, Schema, compiled, message_type, of_text
from tests.support.oracle import difference, oracle_row

KINDS = """import "google/protobuf/timestamp.proto"; import "google/protobuf/struct.proto";
import "google/protobuf/any.proto"; import "google/protobuf/wrappers.proto";
enum Mode { BLITZ = 0; RAPID = 1; }
message M { uint32 small = 1; uint64 large = 2; int32 number = 3; Mode mode = 4; google.protobuf.Timestamp at = 5;
  repeated int32 list = 6; map<string, Mode> by_name = 7; oneof end { string winner = 8; bool draw = 9; }
  google.protobuf.Struct any_shape = 10; google.protobuf.Any any = 11; double rate = 12; N inside = 13;
  google.protobuf.DoubleValue wrapped = 14; repeated N all = 15; map<int32, N> by_number = 16; }
message N { string text = 1; float rate = 2; google.protobuf.Timestamp at = 3; }"""


def decoded(schema: bytes, message: str, made: list[bytes]) -> tuple[dict[str, pa.Array], int]:
    by = decoder_of(schema, message)
    batch = by.decode(made)
    assert batch.bad == ()
    order = pa.array(sorted(range(len(made)), key=list(batch.good).__getitem__), pa.int64())
    names = [column.name.lower() for column in by.columns]
    return dict(zip(names, (array.take(order) for array in batch.columns), strict=True)), len(made)


def encoded(**columns: list[Any]) -> EncodedBatch:
    """What becomes of these columns of `M`; a column has the type of the column rules."""
    schema, message, _ = of_text(KINDS)
    types = {column.name: arrow_type(column.type) for column in decoder_of(schema, message).columns}
    arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
    return encoder_of(schema, message).encode(arrays, len(next(iter(columns.values()))))


def read(data: bytes) -> Any:
    _, _, cls = of_text(KINDS)
    return cls.FromString(data)


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_what_was_decoded_is_encoded_as_the_same_message(schema: Schema, message: str) -> None:
    cls: Any = message_type(schema, message)
    made = payloads(cls, seed=21, count=40)
    columns, count = decoded(compiled(schema), message, made)
    again = encoder_of(compiled(schema), message).encode(columns, count)
    assert again.bad == {}
    rows = [oracle_row(cls.FromString(data), cls.DESCRIPTOR) for data in made]
    for row, data in zip(rows, again.payloads.to_pylist(), strict=True):
        assert difference(row, oracle_row(cls.FromString(data), cls.DESCRIPTOR)) is None


@pytest.mark.parametrize(("schema", "message"), CASES)
def test_the_bytes_are_those_of_the_reference_but_for_the_order_of_map_entries(schema: Schema, message: str) -> None:
    cls: Any = message_type(schema, message)
    columns, count = decoded(compiled(schema), message, payloads(cls, seed=22, count=40))
    by = encoder_of(compiled(schema), message)
    slow = PayloadEncoder(compiled(schema), message)
    slow._is_fast = False
    pairs = zip(
        by.encode(columns, count).payloads.to_pylist(), slow.encode(columns, count).payloads.to_pylist(), strict=True
    )
    for fast, reference in pairs:
        assert len(fast) == len(reference)
        assert cls.SerializeToString(cls.FromString(fast), deterministic=True) == reference
        assert fast == reference or "Cardinality.MAP" in repr(by.shape)


def test_a_field_without_a_column_and_a_null_are_unset() -> None:
    done = encoded(number=[5, None])
    assert done.payloads.to_pylist() == [b"\x18\x05", b""]
    assert done.bad == {}


def test_a_zero_of_implicit_presence_is_not_written_and_one_in_a_oneof_is() -> None:
    done = encoded(number=[0, 0], draw=[False, None])
    assert done.payloads.to_pylist() == [b"\x48\x00", b""]


def test_minus_zero_is_written_wherever_it_is() -> None:
    inside = {"text": "", "rate": -0.0, "at": None}
    done = encoded(
        rate=[-0.0, 0.0, 1.0, 0.0, 0.0],
        wrapped=[None, -0.0, None, 0.0, None],
        inside=[None, None, inside, None, None],
        all=[[], [], [], [], [inside]],
    )
    found = [read(data) for data in done.payloads.to_pylist()]
    assert [str(found[0].rate), str(found[1].wrapped.value), str(found[2].inside.rate), str(found[4].all[0].rate)] == [
        "-0.0"
    ] * 4
    assert [one.HasField("wrapped") for one in found] == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"small": [-1]}, "Column small is -1, outside of uint32."),
        ({"small": [2**32]}, "Column small is 4294967296, outside of uint32."),
        ({"large": [-1]}, "Column large is -1, outside of uint64."),
        ({"large": [2**64]}, "Column large is 18446744073709551616, outside of uint64."),
        ({"mode": ["BULLET"]}, "Column mode is 'BULLET', no value of t.Mode."),
        ({"mode": ["01"]}, "Column mode is '01', no value of t.Mode."),
        ({"mode": ["2147483648"]}, "Column mode is '2147483648', no value of t.Mode."),
        ({"list": [[1, None]]}, "Column list.element is NULL."),
        ({"by_name": [[("a", None)]]}, "Column by_name.value is NULL."),
        ({"by_name": [[("a", "x")]]}, "Column by_name.value is 'x', no value of t.Mode."),
        ({"winner": ["a"], "draw": [True]}, "More than one column of the oneof end is set."),
        ({"any_shape": ["["]}, "Column any_shape is no JSON of google.protobuf.Struct: "),
        ({"any": ['{"@type": "x/y.Z", "value": "?"}']}, "Column any is no JSON of google.protobuf.Any: "),
        ({"at": [253_402_300_800_000_000]}, "Column at is outside of the years 1 to 9999."),
        ({"all": [[{"at": 253_402_300_800_000_000}]]}, "Column all.element.at is outside of the years 1 to 9999."),
        ({"by_number": [[(1, {"at": -(2**63)})]]}, "Column by_number.value.at is outside of the years 1 to 9999."),
    ],
    ids=str,
)
def test_a_value_without_a_place_in_its_field_is_a_bad_row_and_its_neighbours_are_good(
    columns: dict[str, list[Any]], sentence: str
) -> None:
    around = {name: [None, *values, None] for name, values in columns.items()}
    done = encoded(number=[1, 2, 3], **around)
    assert list(done.bad) == [1]
    assert done.bad[1].startswith(sentence)
    assert done.payloads.to_pylist() == [b"\x18\x01", None, b"\x18\x03"]


def test_text_that_is_no_utf_8_is_a_bad_row() -> None:
    schema, message, _ = of_text(KINDS)
    data = pa.array([b"ok", b"\xff"], pa.binary()).view(pa.string())
    done = encoder_of(schema, message).encode({"winner": data}, 2)
    assert done.bad == {1: "Column winner is not UTF-8."}
    assert done.payloads.to_pylist() == [b"\x42\x02ok", None]


def test_a_required_field_that_is_null_is_a_bad_row_only_where_its_message_is_set() -> None:
    schema, message, cls = of_text(
        "message M { required int32 a = 1; optional N n = 2; } message N { required int32 b = 1; }", syntax="proto2"
    )
    nested = pa.array([{"b": 1}, {"b": None}, None, None], pa.struct([("b", pa.int32())]))
    done = encoder_of(schema, message).encode({"a": pa.array([1, 1, 1, None], pa.int32()), "n": nested}, 4)
    assert done.bad == {
        1: "Column n.b is NULL, and the field is required.",
        3: "Column a is NULL, and the field is required.",
    }
    assert done.payloads.to_pylist() == [cls(a=1, n={"b": 1}).SerializeToString(), None, b"\x08\x01", None]


def test_an_alias_and_digits_of_an_open_enum_are_values() -> None:
    schema, message, _ = of_text("enum E { option allow_alias = true; A = 0; B = 1; C = 1; } message M { E e = 1; }")
    done = encoder_of(schema, message).encode({"e": pa.array(["C", "B", "7", "-1", "A", None])}, 6)
    assert done.bad == {}
    assert done.payloads.to_pylist()[:3] == [b"\x08\x01", b"\x08\x01", b"\x08\x07"]
    assert done.payloads.to_pylist()[4:] == [b"", b""]


def test_integers_of_any_width_go_into_a_field_that_has_room() -> None:
    schema, message, _ = of_text("message M { int32 a = 1; uint64 b = 2; }")
    columns = {"a": pa.array([1, 2**31], pa.int64()), "b": pa.array([-1, 5], pa.int8())}
    done = encoder_of(schema, message).encode(columns, 2)
    assert done.bad == {0: "Column b is -1, outside of uint64.", 1: "Column a is 2147483648, outside of int32."}
    small = {"a": pa.array([1, 2], pa.int64()), "b": pa.array([3, 4], pa.int16())}
    assert encoder_of(schema, message).encode(small, 2).payloads.to_pylist() == [
        b"\x08\x01\x10\x03",
        b"\x08\x02\x10\x04",
    ]


def test_no_rows_are_no_payloads() -> None:
    done = encoded(number=[], list=[], by_name=[], all=[])
    assert (done.payloads.to_pylist(), dict(done.bad)) == ([], {})


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "small": st.none() | st.integers(-2, 2**33),
            "mode": st.sampled_from([None, "BLITZ", "RAPID", "9", "x"]),
            "list": st.none() | st.lists(st.none() | st.integers(-5, 5), max_size=3),
            "rate": st.none() | st.floats(),
            "winner": st.none() | st.text(max_size=3),
            "draw": st.none() | st.booleans(),
        }
    ),
    max_size=30,
)


@given(ROWS)
def test_a_row_is_encoded_alike_whatever_rows_are_beside_it(rows: list[dict[str, Any]]) -> None:
    names = ("small", "mode", "list", "rate", "winner", "draw")
    together = encoded(**{name: [row[name] for row in rows] for name in names})
    for place, row in enumerate(rows):
        alone = encoded(**{name: [row[name]] for name in names})
        assert together.payloads[place].as_py() == alone.payloads[0].as_py()
        assert together.bad.get(place) == alone.bad.get(0)
        if not alone.bad:
            made = read(alone.payloads[0].as_py())
            assert alone.payloads[0].as_py() == made.SerializeToString(deterministic=True)
            assert (made.small, list(made.list), made.winner) == (
                row["small"] or 0,
                row["list"] or [],
                row["winner"] or "",
            )
