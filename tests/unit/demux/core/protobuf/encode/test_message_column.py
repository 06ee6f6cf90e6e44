"""Messages in a column of any frame, without Spark: a struct or columns in, payloads and bad rows out."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.encode.message_column import MessageColumn, to_payloads
from tests.support.data.messages import payloads
from tests.support.data.protos import CASES, Schema, compiled, message_type, of_text

by_value: Any = cloudpickle.dumps
TEXT = "message M { int32 a = 1; uint32 b = 2; }"


def encoded(column: MessageColumn, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, by the function as a worker gets it."""
    function = pickle.loads(by_value(to_payloads(column, "value", "bad")))
    return [row for made in function(iter([batch])) for row in made.to_pylist()]


def test_columns_become_payloads_behind_the_frame_and_the_columns_stay() -> None:
    schema, message, _ = of_text(TEXT)
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "B": [1, -1, None], "a": [None, 1, 2]})
    assert encoded(MessageColumn((1, 2), False, schema, message, b"\x00\x07"), batch) == [
        {"n": 1, "B": 1, "a": None, "value": b"\x00\x07\x10\x01", "bad": None},
        {
            "n": 2,
            "B": -1,
            "a": 1,
            "value": None,
            "bad": {"cause": "UNFIT_VALUE", "sentence": "Column b is -1, outside of uint32."},
        },
        {"n": 3, "B": None, "a": 2, "value": b"\x00\x07\x08\x02", "bad": None},
    ]


def test_a_null_struct_is_no_payload_and_one_of_nulls_is_an_empty_one() -> None:
    schema, message, _ = of_text(TEXT)
    batch = pa.RecordBatch.from_pydict(
        {"m": [None, {"a": None, "b": None}, {"a": 1, "b": 2**32}, None, {"a": 1, "b": 0}]}
    )
    rows = encoded(MessageColumn((0,), True, schema, message, b""), batch)
    assert [row["value"] for row in rows] == [None, b"", None, None, b"\x08\x01"]
    assert [row["bad"] is None for row in rows] == [True, True, False, True, True]


@pytest.mark.thorough
@pytest.mark.parametrize(("schema", "message"), CASES)
def test_a_part_of_a_batch_is_encoded_as_the_whole_is(schema: Schema, message: str) -> None:
    by = decoder_of(compiled(schema), message)
    decoded = by.decode(payloads(message_type(schema, message), seed=3, count=31))
    if not decoded.columns:
        return
    names = [column.name for column in by.columns]
    mask = pa.array([row % 3 == 0 for row in range(31)])
    struct = pa.StructArray.from_arrays(decoded.columns, names=names, mask=mask)
    column = MessageColumn((0,), True, compiled(schema), message, b"")
    whole = encoded(column, pa.RecordBatch.from_arrays([struct], names=["m"]))
    part = encoded(column, pa.RecordBatch.from_arrays([struct], names=["m"]).slice(4, 20))
    assert [row["value"] for row in part] == [row["value"] for row in whole[4:24]]
    assert [row["value"] is None for row in whole] == mask.to_pylist()
