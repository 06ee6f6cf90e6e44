"""The files that a task of bronze writes: every record in those of one table, the refused ones with their bytes."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bronze_ingest.file_sink import to_files
from bronze_ingest.source import SOURCE
from bronze_ingest.unwrap import wrapper_format
from demux.core.columns.arrow import arrow_fields
from demux.core.delta.app_transactions import Batch
from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings

CHESS = b"\x0a\x05chess\x10\x0b\x1a\x02\x00\xff"
NO_NAME = b"\x10\x0b"
VALUES = [NO_NAME, CHESS, b"\xff", CHESS, None]


def test_each_record_is_in_a_file_of_bronze_or_of_quarantine_and_never_in_both(tmp_path: Path) -> None:
    layout = Layout(str(tmp_path))
    bronze, quarantine = layout.bronze, layout.quarantine
    rows = [{"value": value, "origin": "files", "record_id": f"r{at}"} for at, value in enumerate(VALUES)]
    records = pa.RecordBatch.from_pylist(rows, schema=pa.schema(arrow_fields(SOURCE)))
    now = datetime(2026, 1, 2, tzinfo=timezone.utc)
    work = to_files(wrapper_format(Settings()), layout, Batch("q", 7, retried=False), now)
    (files,) = work(iter([records]))
    found = {file["table"]: file for file in files.to_pylist()}
    good, bad = (pq.ParquetFile(Path(table, found[table]["path"])).read().to_pylist() for table in (bronze, quarantine))
    assert [(row["record_id"], row["payload"], row["batch_id"]) for row in good] == [
        ("r1", b"\x00\xff", 7),
        ("r3", b"\x00\xff", 7),
    ]
    assert [(row["record_id"], row["bytes"], row["cause"], row["batch_id"]) for row in bad] == [
        ("r0", NO_NAME, "INVALID_GAME_NAME", 7),
        ("r2", b"\xff", "MALFORMED_WRAPPER", 7),
        ("r4", None, "MALFORMED_WRAPPER", 7),
    ]
    assert [(found[table]["partition"], found[table]["rows"]) for table in (bronze, quarantine)] == [
        ("chess", 2),
        (None, 3),
    ]
