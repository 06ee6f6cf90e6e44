"""Files of a round that were written before a column became wider."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Array, Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableWriter
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN
from deserializer.silver.rewrite import in_columns

MOMENT = datetime(2025, 1, 2, tzinfo=timezone.utc)


def payload(number: Primitive, *more: Column) -> Struct:
    inner = Struct((Column("n", number, 1), *more))
    return Struct((Column("a", number, 1), Column("many", Array(inner), 2), *more))


def test_the_same_rows_stand_in_one_file_with_the_wider_columns_and_the_new_ones(tmp_path: Path) -> None:
    before, after = payload(Primitive.INT), payload(Primitive.BIGINT, Column("new", Primitive.STRING, 3))
    rows: list[dict[str, Any]] = [
        {"a": number, "many": [{"n": -number}], "_record_id": f"r{number}", "_decoded_at": MOMENT} for number in (1, 2)
    ]
    files = []
    columns = Struct((*before, *SILVER_ORIGIN))
    for row in rows:
        with TableWriter(Storage(), str(tmp_path), columns) as writer:
            writer.add(pa.RecordBatch.from_pylist([row], schema=pa.schema(arrow_fields(columns))))
            files += writer.close()

    made = in_columns(Storage(), files, str(tmp_path), before, after)

    assert [file.rows for file in made] == [2]
    assert sorted(tmp_path.iterdir()) == [tmp_path / made[0].path]
    found = pq.read_table(tmp_path / made[0].path)
    assert found.schema.field("a").type == pa.int64()
    everything = {column.name: None for column in (*after, *SILVER_ORIGIN)}
    assert found.to_pylist() == [everything | row | {"many": [{"n": -row["a"], "new": None}]} for row in rows]


def test_of_no_files_no_file_is_made(tmp_path: Path) -> None:
    assert in_columns(Storage(), (), str(tmp_path), payload(Primitive.INT), payload(Primitive.BIGINT)) == ()
    assert list(tmp_path.iterdir()) == []
