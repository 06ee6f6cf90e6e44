"""Files of a game that were written in a round before another schema of the same round made columns wider."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from demux.arrow_types import arrow_fields
from demux.columns import Struct
from demux.projection import project
from demux.storage.files import Storage
from demux.table_files import TableFile, TableWriter, remove_files
from demux.tables import SILVER_ORIGIN


def in_columns(
    storage: Storage, files: Sequence[TableFile], table: str, before: Struct, after: Struct
) -> tuple[TableFile, ...]:
    """Return files with the same rows in other payload columns; the old ones are removed.

    Args:
        storage: how the table is reached.
        files: in no commit yet.
        table: the table's path.
        before: the payload columns that they have.
        after: those that they are to have (`demux.alignment`).
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
