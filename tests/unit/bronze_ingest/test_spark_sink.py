"""The Arrow functions of bronze: every record with its position, whole, in one table or the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bronze_ingest.source import SOURCE
from bronze_ingest.spark_sink import to_fields, to_refused
from bronze_ingest.to_columns import EXAMINED, with_fields
from bronze_ingest.unwrap import wrapper_format
from demux.core.columns.arrow import arrow_fields
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED
from demux.core.settings.settings import Settings
from demux.core.tables import BRONZE, QUARANTINE

FORMAT = wrapper_format(Settings())
BATCH = Batch("q", 7, retried=False)
CHESS = b"\x0a\x05chess\x10\x0b\x1a\x02\x00\xff"
NO_NAME = b"\x10\x0b"
records = st.lists(st.sampled_from([CHESS, NO_NAME, b"\xff", None, b""]), max_size=12)


def batch(values: Sequence[bytes | None]) -> pa.RecordBatch:
    rows = [
        {
            "value": value,
            "topic": "events",
            "partition": 1,
            "offset": offset,
            "key": b"k",
            "headers": [{"key": "h", "value": b"v"}],
            "origin": "delta",
            "record_id": f"r{offset}",
        }
        for offset, value in enumerate(values)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(arrow_fields(SOURCE)))


def fields(values: Sequence[bytes | None]) -> list[dict[str, Any]]:
    return [row for one in to_fields(FORMAT, BATCH)(iter([batch(values)])) for row in one.to_pylist()]


def refused_in(values: Sequence[bytes | None]) -> list[dict[str, Any]]:
    return [row for one in to_refused(FORMAT, BATCH)(iter([batch(values)])) for row in one.to_pylist()]


def test_a_record_comes_to_bronze_with_its_payload_and_everything_the_source_said() -> None:
    assert fields([CHESS]) == [
        {
            **{"game_name": "chess", "schema_id": 11, "payload": b"\x00\xff", REFUSED: False},
            **{"schema_guid": None, "message_indexes": None},
            **{"origin": "delta", "topic": "events", "partition": 1, "offset": 0, "timestamp": None, "record_id": "r0"},
            **{"key": b"k", "headers": [{"key": "h", "value": b"v"}]},
        }
    ]


def test_the_columns_are_those_of_bronze_but_what_spark_adds() -> None:
    (one,) = to_fields(FORMAT, BATCH)(iter([batch([CHESS, None])]))
    assert one.schema.names == [column.name for column in with_fields(FORMAT)]
    assert set(one.schema.names) == {column.name for column in BRONZE} - {"ingested_at", "batch_id"} | {REFUSED}
    assert [column.type for column in one.columns] == [field.type for field in arrow_fields(with_fields(FORMAT))]


def test_a_refused_record_comes_to_quarantine_whole_with_cause_and_position() -> None:
    (row,) = refused_in([CHESS, NO_NAME])
    assert row == {
        **{"game_name": None, "schema_id": 11, "bytes": NO_NAME},
        **{"schema_guid": None, "message_indexes": None, "key": b"k", "headers": [{"key": "h", "value": b"v"}]},
        **{"origin": "delta", "topic": "events", "partition": 1, "offset": 1, "timestamp": None, "record_id": "r1"},
        **{"cause": "INVALID_GAME_NAME", "sentence": "The game name is empty."},
    }


def test_quarantine_gets_the_types_of_its_columns() -> None:
    (one,) = to_refused(FORMAT, BATCH)(iter([batch([CHESS, None])]))
    assert [(field.name, field.type) for field in one.schema] == [
        (field.name, field.type) for field in arrow_fields(EXAMINED)
    ]
    stamped = {"stage", "query_id", "batch_id", "quarantined_at"}
    assert [column for column in EXAMINED if column.name != "cause"] == [
        column for column in QUARANTINE if column.name not in {*stamped, "cause"}
    ]


@given(records)
def test_each_record_is_good_in_bronze_or_refused_with_its_bytes_and_never_both(values: list[bytes | None]) -> None:
    good = [row["record_id"] for row in fields(values) if not row[REFUSED]]
    refused = {row["record_id"]: row["bytes"] for row in refused_in(values)}
    assert sorted([*good, *refused]) == sorted(f"r{number}" for number in range(len(values)))
    assert all(values[int(record_id[1:])] == data for record_id, data in refused.items())
