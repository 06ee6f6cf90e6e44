"""Archived Parquet files: columns of many types, and what is broken in one."""

from __future__ import annotations

import io
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bronze_ingest.archive.record_batch import MAX_BATCH_BYTES, MAX_PIECE_BYTES, MAX_RECORD_BYTES
from demux.core.settings.source import ArchiveFormat
from tests.support.data.archives import Archived, archive_bytes, batches, of
from tests.support.data.archives import rows as rows_of

MOMENT = datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def rows(content: bytes) -> list[dict[str, Any]]:
    return rows_of(content, ArchiveFormat.PARQUET, "file:/a")


def content_of(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def refused(content: bytes) -> list[tuple[str, bytes, str]]:
    return [
        (row["record_id"], row["value"], row["refused_sentence"]) for row in rows(content) if row["refused_sentence"]
    ]


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.large_binary(),
        pa.binary(2),
        pa.string(),
        pa.large_string(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_a_value_of_bytes_or_text_is_taken_as_it_is(kind: pa.DataType) -> None:
    table = pa.table(
        {"Value": pa.array(["ab", None, "cd"], kind if not pa.types.is_dictionary(kind) else None).cast(kind)}
    )
    assert [(row["value"], row["refused_sentence"]) for row in rows(content_of(table))] == [
        (b"ab", None),
        (None, None),
        (b"cd", None),
    ]


def test_columns_of_other_types_are_taken_where_nothing_is_lost() -> None:
    table = pa.table(
        {
            "value": [b"a"],
            "VALUE": [b"not this one"],
            "topic": pa.array(["t"]).dictionary_encode(),
            "partition": pa.array([7], pa.int64()),
            "OFFSET": pa.array([8], pa.uint8()),
            "timestamp": pa.array([1_735_787_045_000], pa.uint64()),
            "key": ["k"],
            "headers": pa.array([[("h", b"v")]], pa.map_(pa.string(), pa.binary())),
            "more": [1],
        }
    )
    (row,) = rows(content_of(table))
    assert row == {
        **{"value": b"a", "topic": "t", "partition": 7, "offset": 8, "timestamp": MOMENT, "key": b"k"},
        **{"headers": [{"key": "h", "value": b"v"}], "origin": "files", "record_id": "file:/a#0"},
        **{"refused_sentence": None},
    }


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns", "UTC"), pa.timestamp("us"), pa.timestamp("ms", "Europe/Berlin")], ids=str
)
def test_a_time_of_any_unit_is_taken_and_without_a_zone_it_is_utc(kind: pa.DataType) -> None:
    micros = pa.array([1_735_787_045_000_000], pa.int64()).cast(pa.timestamp("us", "UTC"))
    column = micros.cast(pa.timestamp(kind.unit, "UTC")).cast(pa.int64()).cast(kind)
    (row,) = rows(content_of(pa.table({"value": [b"a"], "timestamp": column})))
    assert row["timestamp"] == MOMENT


def test_nanoseconds_that_do_not_fit_are_cut_off() -> None:
    column = pa.array([1_735_787_045_000_000_999], pa.timestamp("ns", "UTC"))
    (row,) = rows(content_of(pa.table({"value": [b"a"], "timestamp": column})))
    assert (row["timestamp"], row["refused_sentence"]) == (MOMENT, None)


def test_a_row_whose_values_do_not_fit_is_a_piece_and_its_neighbours_are_records() -> None:
    table = pa.table({"value": [b"a", b"b", b"c", None], "partition": pa.array([0, 2**31, 1, -(2**40)], pa.int64())})
    found = rows(content_of(table))
    assert [(row["value"], row["partition"], row["refused_sentence"]) for row in found] == [
        (b"a", 0, None),
        (b"b", None, "Malformed row 1 of file:/a: Integer value 2147483648 not in range: -2147483648 to 2147483647."),
        (b"c", 1, None),
        (
            b"",
            None,
            "Malformed row 3 of file:/a: Integer value -1099511627776 not in range: -2147483648 to 2147483647.",
        ),
    ]
    assert [row["record_id"] for row in found] == [f"file:/a#{row}" for row in range(4)]


def test_text_that_is_no_utf_8_makes_its_row_a_piece() -> None:
    topic = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff"], pa.binary()).buffers())
    found = rows(content_of(pa.table({"value": [b"a", b"b"], "topic": topic})))
    assert [(row["value"], row["topic"], bool(row["refused_sentence"])) for row in found] == [
        (b"a", "ok", False),
        (b"b", None, True),
    ]


@pytest.mark.parametrize(
    "table",
    [pa.table({"payload": [b"a"]}), pa.table({"value": [1]}), pa.table({"value": [{"value": b"a"}]})],
    ids=["no value", "a number", "a struct"],
)
def test_a_file_without_a_column_of_bytes_is_one_piece(table: pa.Table) -> None:
    content = content_of(table)
    sentence = f"Malformed bytes 0 to {len(content) - 1} of file:/a: no BINARY column `value`."
    assert refused(content) == [("file:/a#0", content, sentence)]


@pytest.mark.parametrize("content", [b"PAR1", b"x" * 100, b"PAR1" + b"\xff" * 20 + b"PAR1"], ids=["4", "x", "footer"])
def test_a_file_that_is_no_parquet_is_one_piece(content: bytes) -> None:
    ((record_id, kept, sentence),) = refused(content)
    assert (record_id, kept) == ("file:/a#0", content)
    assert sentence.startswith(f"Malformed bytes 0 to {len(content) - 1} of file:/a: no Parquet file: ")


def test_a_broken_row_group_is_one_piece_and_those_around_it_are_records() -> None:
    some = [Archived(bytes([at]) * 40) for at in range(9)]
    content = bytearray(archive_bytes(ArchiveFormat.PARQUET, some, row_group_size=3))
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    value = metadata.row_group(1).column(0)
    start = value.dictionary_page_offset or value.data_page_offset
    for place in range(start, start + value.total_compressed_size):
        content[place] ^= 0x55
    found = rows(bytes(content))
    assert [row["value"] for row in found if row["refused_sentence"] is None] == [
        record.value for record in (*some[:3], *some[6:])
    ]
    ((record_id, kept, sentence),) = refused(bytes(content))
    assert record_id == "file:/a#3"
    assert sentence.startswith(f"Malformed rows 3 to 5 in row group 1, read from bytes {start} to ")
    assert kept == bytes(content[start : start + len(kept)])
    assert len(kept) >= value.total_compressed_size
    assert [row["record_id"] for row in found] == [f"file:/a#{row}" for row in (0, 1, 2, 3, 6, 7, 8)]


@pytest.mark.thorough
def test_a_file_with_any_byte_changed_is_read_or_refused_and_never_fails() -> None:
    content = archive_bytes(ArchiveFormat.PARQUET, [Archived(b"abc" * 9, "t", 0, at) for at in range(4)], 2)
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        rows(bytes(changed))


@pytest.mark.thorough
def test_a_record_that_is_too_large_is_a_piece_and_its_neighbours_are_records() -> None:
    large = b"x" * (MAX_RECORD_BYTES + 1)
    found = rows(archive_bytes(ArchiveFormat.PARQUET, of(b"a", large, b"b")))
    assert [(row["value"], row["refused_sentence"]) for row in found] == [
        (b"a", None),
        (
            large[:MAX_PIECE_BYTES],
            "Malformed row 1 of file:/a: a record of more than 67108864 bytes. Only the first 1048576 bytes are kept.",
        ),
        (b"b", None),
    ]


def test_an_empty_row_group_takes_no_row_number() -> None:
    table = pa.table({"value": pa.array([b"a", b"b"], pa.binary())})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema) as writer:
        for part in (table[:0], table[:1], table[:0], table[1:]):
            writer.write_table(part)
    found = rows(sink.getvalue())
    assert [(row["record_id"], row["value"]) for row in found] == [("file:/a#0", b"a"), ("file:/a#1", b"b")]


@pytest.mark.parametrize("kind", [pa.binary(), pa.dictionary(pa.int32(), pa.binary())], ids=str)
def test_large_values_that_the_file_holds_only_once_come_in_bounded_batches(kind: pa.DataType) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array([b"x" * 500_000]))
    content = content_of(pa.table({"value": values.cast(kind)}))
    assert len(content) < 1_000_000
    found = batches(content, ArchiveFormat.PARQUET)
    assert sum(len(batch) for batch in found) == 100
    assert max(len(batch) for batch in found) <= MAX_BATCH_BYTES // 500_000
    assert found[-1].column("record_id")[-1].as_py() == "file:/a/b.bin#99"
