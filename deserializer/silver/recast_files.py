"""Files of a game that were written in a round before another schema of the same round made columns wider."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.projection import project
from demux.core.columns.types import Struct
from demux.core.delta.parquet_writer import TableFile, TableWriter, remove_files
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_ORIGIN


def in_columns(
    storage: Storage, files: Sequence[TableFile], table: str, before: Struct, after: Struct
) -> tuple[TableFile, ...]:
    """Return files with the same rows in other payload columns; the old ones are removed.

    Args:
        storage: how the table is reached.
        files: in no commit yet.
        table: the table's path.
        before: the payload columns that they have.
        after: those that they are to have (`demux.core.columns.schema_merge`).
    """
    schema = pa.schema(arrow_fields(Struct((*after, *SILVER_ORIGIN))))
    own = len(before.columns)
    with TableWriter(storage, table, Struct((*after, *SILVER_ORIGIN))) as writer:
        for file in files:
            with storage.open(f"{table}/{file.path}", file.bytes) as opened:
                for rows in pq.ParquetFile(opened).iter_batches():
                    payload = project(rows.columns[:own], before, after, len(rows))
                    writer.add(pa.RecordBatch.from_arrays([*payload, *rows.columns[own:]], schema=schema))
        made = tuple(writer.close())
    remove_files(storage, table, [file.path for file in files])
    return made
