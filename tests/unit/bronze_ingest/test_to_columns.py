"""Which id a record gets: the source's own, its position, or a number that no other record of the micro-batch has."""

from __future__ import annotations

import pyarrow as pa

from bronze_ingest.source import SOURCE
from bronze_ingest.to_columns import take_apart
from bronze_ingest.unwrap import wrapper_format
from demux.core.columns.arrow import arrow_fields
from demux.core.delta.app_transactions import Batch
from demux.core.settings.settings import Settings

FORMAT = wrapper_format(Settings())
BATCH = Batch("query", 3, retried=False)


def ids(*records: dict[str, object], first: int = 0) -> list[str]:
    batch = pa.RecordBatch.from_pylist(list(records), schema=pa.schema(arrow_fields(SOURCE)))
    found: list[str] = take_apart(batch, FORMAT, BATCH, first).rows().column("record_id").to_pylist()
    return found


def test_a_position_is_an_id() -> None:
    assert ids({"topic": "t", "partition": 0, "offset": 7}) == ["t/0/7"]


def test_the_sources_own_id_goes_before_the_position() -> None:
    archived = {"topic": "t", "partition": 0, "offset": 7, "record_id": "file#9"}
    assert ids(archived, {"topic": "t", "partition": 0, "offset": 7}) == ["file#9", "t/0/7"]


def test_a_record_without_all_of_its_position_is_numbered_in_its_batch() -> None:
    records: list[dict[str, object]] = [
        {"origin": "delta"},
        {"origin": "delta", "topic": "t", "partition": 0},
        {"origin": "delta", "topic": "t", "partition": 0, "offset": 0},
        {"origin": "delta", "offset": 1},
    ]
    assert ids(*records, first=2**33) == [
        "delta/query/3/8589934592",
        "delta/query/3/8589934593",
        "t/0/0",
        "delta/query/3/8589934595",
    ]


def test_a_list_without_headers_is_null_in_bronze_and_in_quarantine() -> None:
    header = {"key": "a", "value": b"1"}
    records: list[dict[str, object]] = [{"headers": []}, {"headers": [header]}, {"headers": None}]
    for sent, kept in ((records, [None, [header], None]), (records[:1], [None])):
        batch = pa.RecordBatch.from_pylist(sent, schema=pa.schema(arrow_fields(SOURCE)))
        found = take_apart(batch, FORMAT, BATCH, 0)
        assert found.rows().column("headers").to_pylist() == kept
        assert found.examined().column("headers").to_pylist() == kept
