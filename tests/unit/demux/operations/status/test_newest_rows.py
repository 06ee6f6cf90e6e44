"""The newest rows of a silver table, as `demux show` prints them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from demux.core.storage.files import Storage
from demux.operations.status.newest_rows import newest_rows

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
INNER = pa.struct([("by_name", pa.map_(pa.string(), pa.struct([("n", pa.int32())])))])
SCHEMA = pa.schema(
    [
        ("many", pa.list_(INNER)),
        ("by_number", pa.map_(pa.int32(), pa.string())),
        ("_decoded_at", pa.timestamp("us", tz="UTC")),
        ("_offset", pa.int64()),
    ]
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "table")
    for number in range(3):
        at = BEGIN + timedelta(hours=number // 2)
        row = {"many": [{"by_name": [("a", {"n": number})]}, None], "_decoded_at": at, "_offset": number}
        rows = [row | {"by_number": None if number else [(7, "seven")]}]
        write_deltalake(path, pa.Table.from_pylist(rows, schema=SCHEMA), mode="append")
    return path


def test_the_newest_come_first_and_a_map_at_any_depth_is_a_dict(path: str) -> None:
    found = newest_rows(Storage(), path, 5)
    assert (found.columns, found.count) == (tuple(SCHEMA.names), 3)
    assert [row["many"] for row in found.rows] == [[{"by_name": {"a": {"n": number}}}, None] for number in (2, 1, 0)]
    assert [row["by_number"] for row in found.rows] == [None, None, {7: "seven"}]


def test_so_many_are_read_as_are_asked_for(path: str) -> None:
    found = newest_rows(Storage(), path, 2)
    assert ([row["_offset"] for row in found.rows], found.count) == ([2, 1], 3)
