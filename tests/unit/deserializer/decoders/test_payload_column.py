"""Payloads in a column of any frame, without Spark: Arrow batches in, messages and bad rows out."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.settings.source import WrapperFraming
from deserializer.decoders.payload_column import PayloadColumn, decide_column, to_messages
from tests.support.data.chess import EMPTY, MISFIT, VERSION_1, VERSION_3, compiled, payload

by_value: Any = cloudpickle.dumps
V1, V3 = compiled(VERSION_1, 11, 1), compiled(VERSION_3, 13, 3)
TWO = 'syntax = "proto3"; message Chess { string user_name = 1; } message Go { string user_name = 1; }'
BOTH: dict[int, CompiledSchema | SchemaInvalid] = {11: V1, 13: V3}
ANNA = payload(V1, user_name="anna", moves=3)
BERT = payload(V3, player="bert", board={"blitz": True}, clocks=[1, 2**40])
ANNA_ROW = {"user_name": "anna", "moves": 3, "board": None, "clocks": None}
BERT_ROW = {"user_name": "bert", "moves": 0, "board": {"blitz": True, "opening": ""}, "clocks": [1, 2**40]}


def frame(schema_id: int, indexes: bytes = b"\0") -> bytes:
    """A Confluent frame."""
    return b"\0" + schema_id.to_bytes(4, "big") + indexes


def decoded(
    column: PayloadColumn, values: Sequence[bytes | None], ids: Sequence[int | None] = (), into: str | None = "message"
) -> list[dict[str, Any]]:
    """The rows of a batch with the columns `n`, `value`, and `id` where there are ids."""
    arrays = [pa.array(range(len(values)), pa.int64()), pa.array(values, pa.binary())]
    names = ["n", "value"]
    if ids:
        arrays, names = [*arrays, pa.array(ids, pa.int32())], [*names, "id"]
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    rows: list[dict[str, Any]] = []
    for made in to_messages(column, into, "bad", None)(iter([batch])):
        rows += made.to_pylist()
    assert [row["n"] for row in rows] == list(range(len(values)))
    return rows


def framed(
    schemas: dict[int, CompiledSchema | SchemaInvalid] = BOTH, framing: WrapperFraming = WrapperFraming.CONFLUENT
) -> PayloadColumn:
    return PayloadColumn(1, framing, decide_column(schemas))


def causes(rows: list[dict[str, Any]]) -> list[str | None]:
    return [row["bad"] and row["bad"]["cause"] for row in rows]


def test_each_row_is_decoded_by_the_schema_of_its_frame_and_the_order_stays() -> None:
    rows = decoded(framed(), [frame(13) + BERT, frame(11) + ANNA, frame(13) + BERT])
    assert [row["message"] for row in rows] == [BERT_ROW, ANNA_ROW, BERT_ROW]
    assert causes(rows) == [None, None, None]


def test_a_bad_row_keeps_its_bytes_with_a_cause_and_its_neighbours_are_good() -> None:
    sent = [frame(11) + ANNA, b"", b"\x07", frame(99) + ANNA, frame(11) + ANNA[:3], frame(13) + BERT]
    rows = decoded(framed(), sent)
    assert causes(rows) == [None, "MALFORMED_FRAME", "MALFORMED_FRAME", "UNKNOWN_SCHEMA", "MALFORMED_PAYLOAD", None]
    assert [row["bad"] and row["bad"]["bytes"] for row in rows] == [None, *sent[1:5], None]
    assert [row["message"] for row in rows] == [ANNA_ROW, None, None, None, None, BERT_ROW]
    assert rows[3]["bad"]["sentence"] == ("Schema 99 is none of those that were known when the frame was made: 11, 13.")


def test_a_null_payload_is_a_good_row_without_a_message_and_an_empty_one_a_message_of_defaults() -> None:
    column = PayloadColumn(1, WrapperFraming.BARE, decide_column({11: V1}), shared_id=11)
    rows = decoded(column, [None, b""])
    assert [row["message"] for row in rows] == [None, {"user_name": "", "moves": 0}]
    assert causes(rows) == [None, None]


def test_a_column_says_which_schema_a_row_has_and_null_or_an_id_beyond_32_bits_is_none() -> None:
    column = PayloadColumn(1, WrapperFraming.BARE, decide_column(BOTH), schema_id=2)
    rows = decoded(column, [ANNA, BERT, ANNA], [11, 13, None])
    assert [row["message"] for row in rows] == [ANNA_ROW, BERT_ROW, None]
    assert rows[2]["bad"]["sentence"] == "The row has no schema id."
    assert [row["id"] for row in rows] == [11, 13, None]


def test_a_frame_that_names_another_message_of_the_file_is_a_bad_row() -> None:
    rows = decoded(
        framed({11: compiled(TWO, 11)}), [frame(11, b"\0") + b"", frame(11, b"\x02\x02"), frame(11, b"\x02\x04")]
    )
    assert causes(rows) == [None, "SCHEMA_CONFLICT", "SCHEMA_CONFLICT"]
    assert rows[1]["bad"]["sentence"] == "The frame names message Go of schema 11; the column has Chess."


def test_a_guid_is_no_id() -> None:
    rows = decoded(framed(), [b"\x01" + bytes(16) + b"\0" + ANNA])
    assert causes(rows) == ["UNKNOWN_SCHEMA"]


def test_a_frame_before_payloads_of_one_file_is_cut_off_whatever_it_names() -> None:
    column = PayloadColumn(1, WrapperFraming.CONFLUENT, decide_column({0: V1}), shared_id=0)
    rows = decoded(column, [frame(7) + ANNA, frame(8, b"\x02\x08") + ANNA])
    assert [row["message"] for row in rows] == [{"user_name": "anna", "moves": 3}] * 2


def test_a_version_that_does_not_fit_is_bad_rows_and_the_others_are_good() -> None:
    rows = decoded(framed({11: V1, 12: compiled(MISFIT, 12, 2)}), [frame(11) + ANNA, frame(12) + b""])
    assert sorted(causes(rows), key=str) == [None, "SCHEMA_CONFLICT"]


def test_a_schema_that_cannot_be_used_is_bad_rows_unless_it_is_the_only_one() -> None:
    invalid = SchemaInvalid("Schema 12 does not compile: no.", "Correct it.")
    rows = decoded(framed({11: V1, 12: invalid}), [frame(11) + ANNA, frame(12) + ANNA])
    assert causes(rows) == [None, "INVALID_SCHEMA"]
    with pytest.raises(SchemaInvalid, match="Schema 12 does not compile"):
        decide_column({12: invalid})


def test_a_message_without_fields_is_a_struct_that_says_so() -> None:
    column = PayloadColumn(1, WrapperFraming.BARE, decide_column({11: compiled(EMPTY, 11)}), shared_id=11)
    assert [row["message"] for row in decoded(column, [b"", None, b"\xff"])] == [{"_empty": True}, None, None]


def test_without_a_struct_each_field_is_a_column() -> None:
    names = frozenset({"n", "bad"})
    column = PayloadColumn(1, WrapperFraming.BARE, decide_column({11: V1}, names), shared_id=11)
    assert decoded(column, [ANNA, None], into=None) == [
        {"n": 0, "user_name": "anna", "moves": 3, "bad": None},
        {"n": 1, "user_name": None, "moves": None, "bad": None},
    ]


def test_a_field_gives_way_to_a_column_of_the_frame() -> None:
    taken = decide_column({11: V1}, frozenset({"moves"}))
    assert [one.name for one in taken.columns] == ["user_name", "moves__2"]


def test_what_no_column_has_is_rescued() -> None:
    column = PayloadColumn(0, WrapperFraming.BARE, decide_column({11: V1}), shared_id=11)
    batch = pa.RecordBatch.from_pydict({"value": pa.array([ANNA, BERT, None, b"\xff"], pa.binary())})
    (made,) = to_messages(column, "message", "bad", "rest")(iter([batch]))
    assert made.schema.names == ["message", "bad", "rest"]
    kept = made.column("rest").to_pylist()
    assert kept[0] is kept[2] is kept[3] is None
    assert V3_REST in kept[1]


V3_REST = payload(V3, clocks=[1, 2**40])


@given(
    st.lists(
        st.sampled_from(
            [frame(11) + ANNA, frame(13) + BERT, None, b"", frame(11) + b"\xff", frame(5) + ANNA, frame(13)]
        ),
        max_size=80,
    )
)
def test_a_row_is_decoded_alike_whatever_rows_are_beside_it(values: list[bytes | None]) -> None:
    alone = {value: decoded(framed(), [value])[0] for value in set(values)}
    rows = decoded(framed(), values)
    assert [(row["message"], row["bad"]) for row in rows] == [
        (alone[value]["message"], alone[value]["bad"]) for value in values
    ]


def test_a_worker_gets_the_function_by_value_and_large_binaries_and_slices_are_fine() -> None:
    values = pa.array([None, frame(11) + ANNA, b"", frame(13) + BERT, frame(11)], pa.large_binary())
    column = PayloadColumn(0, WrapperFraming.CONFLUENT, decide_column(BOTH))
    function = pickle.loads(by_value(to_messages(column, "message", "bad", None)))
    batch = pa.RecordBatch.from_arrays([values], names=["value"])
    (made,) = function(iter([batch.slice(1, 3), batch.slice(0, 0)]))
    assert made.column("message").to_pylist() == [ANNA_ROW, None, BERT_ROW]
    assert made.column("bad").null_count == 2
    assert list(function(iter([batch.slice(0, 0)]))) == []
