"""Reads quarantine, in pieces, without Spark; writes nothing.

Rows are looked at in few columns; whole rows are read only where they are shown. A piece is a row group of a file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from demux.core.columns.arrow import arrow_fields, table_of
from demux.core.errors import TableUnsuited
from demux.core.extras import deltalake
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.subject_choice import shared_schemas
from demux.core.tables import QUARANTINE
from demux.operations.quarantine.filter import QuarantineFilter
from demux.operations.quarantine.records import KeptSchemas, QuarantineRecord, record_of
from demux.operations.quarantine.summary import COLUMNS, Grouping, NewestRows, QuarantineGroup, RowLocation

_FEW_COLUMNS_ROWS = 65_536
# rows may be large
_WHOLE_ROWS = 64
_FIRST_TIME, _LAST_TIME = (
    pa.scalar(moment.replace(tzinfo=timezone.utc), pa.timestamp("us", tz="UTC"))
    for moment in (datetime.min, datetime.max)
)
_BUFFER_BYTES = 64 * 1024
_FIELDS = {field.name: field for field in arrow_fields(QUARANTINE)}
_SCHEMA = ["registry", "schema_id", "guid", "subject", "version", "message", "descriptor_set"]


class QuarantineReader:
    """Reads the quarantine table as it was when this was made."""

    def __init__(self, layout: Layout) -> None:
        """Open the table of a root that is reached without Spark; one that is not there has no rows.

        Raises:
            TableUnsuited: it asks for Spark's reader.
        """
        table = _opened(layout, layout.quarantine)
        self._pieces = () if table is None else tuple(_pieces(table))

    def groups(self, choice: QuarantineFilter) -> tuple[QuarantineGroup, ...]:
        """Return the groups of the rows that are meant, those with most rows first."""
        found = Grouping(choice)
        self._look(found, COLUMNS)
        return found.groups

    def newest(self, choice: QuarantineFilter, most: int) -> tuple[int, tuple[QuarantineRecord, ...]]:
        """Return how many rows are meant, and the newest of them, the newest first."""
        found = NewestRows(choice, most)
        self._look(found, COLUMNS if choice.record_id is None else (*COLUMNS, "record_id"))
        records = self.records(found.places)
        return found.rows, tuple(records[place] for place in found.places)

    def records(self, places: Iterable[RowLocation]) -> dict[RowLocation, QuarantineRecord]:
        """Return whole rows by place."""
        by_piece: defaultdict[int, set[int]] = defaultdict(set)
        for place in places:
            by_piece[place.piece].add(place.row)
        return {
            RowLocation(piece, row): record_of(values)
            for piece, rows in by_piece.items()
            for row, values in self._rows(piece, rows)
        }

    def _look(self, counting: Grouping | NewestRows, columns: Sequence[str]) -> None:
        for number, piece in enumerate(self._pieces):
            begin = 0
            for batch in _batches(piece, columns, _FEW_COLUMNS_ROWS):
                counting.add(batch, RowLocation(number, begin))
                begin += len(batch)

    def _rows(self, piece: int, wanted: set[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        begin, last = 0, max(wanted)
        for batch in _batches(self._pieces[piece], [column.name for column in QUARANTINE], _WHOLE_ROWS):
            for row in sorted(row for row in wanted if begin <= row < begin + len(batch)):
                (values,) = _with_known_time(batch.slice(row - begin, 1)).to_pylist()
                yield row, values
            begin += len(batch)
            if begin > last:
                return


def _with_known_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows without times that Python has not: a producer may say any year."""
    at = rows.column("timestamp")
    is_known = pc.and_(pc.greater_equal(at, _FIRST_TIME), pc.less_equal(at, _LAST_TIME))
    return rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", pc.if_else(is_known, at, None))


def games_of(layout: Layout) -> frozenset[str]:
    """Return the games that are in bronze or known, by what the tables' logs say."""
    known = _opened(layout, layout.games)
    found = set() if known is None else set(known.to_pyarrow_table(columns=["game_name"]).column(0).to_pylist())
    bronze = _opened(layout, layout.bronze)
    if bronze is not None:
        files = table_of(bronze.get_add_actions(flatten=True))
        if "partition.game_name" in files.column_names:
            found.update(files.column("partition.game_name").to_pylist())
    return frozenset(game for game in found if game is not None)


def schemas_of(layout: Layout, refs: Collection[SchemaRef]) -> KeptSchemas:
    """Return those of the schemas that rows name which are kept."""
    ids = sorted({ref.schema_id for ref in refs if ref.schema_id is not None})
    guids = sorted({ref.guid for ref in refs if ref.guid is not None})
    table = _opened(layout, layout.schemas)
    if table is None:
        return KeptSchemas({}, {}, {})
    wanted = pc.field("schema_id").isin(pa.array(ids, pa.int32())) | pc.field("guid").isin(pa.array(guids, pa.string()))
    rows = table.to_pyarrow_dataset().to_table(columns=_SCHEMA, filter=wanted).to_pylist()
    by_id = shared_schemas(rows)
    subjects: defaultdict[str, set[str]] = defaultdict(set)
    for row in table.to_pyarrow_table(columns=["registry", "subject"]).to_pylist():
        subjects[row["registry"]].add(row["subject"])
    return KeptSchemas(
        by_id,
        {(row["registry"], row["guid"]): by_id[row["registry"], row["schema_id"]] for row in rows if row["guid"]},
        {registry: frozenset(names) for registry, names in subjects.items()},
    )


def _opened(layout: Layout, path: str) -> deltalake.DeltaTable | None:
    try:
        return layout.storage.table(path)
    except deltalake.exceptions.TableNotFoundError:
        return None
    except deltalake.exceptions.DeltaError as error:
        raise _unsuited(path, error) from error


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file."""

    file: ds.ParquetFileFragment
    group: int


def _pieces(table: deltalake.DeltaTable) -> Iterator[RowGroup]:
    try:
        fragments = table.to_pyarrow_dataset().get_fragments()
    except deltalake.exceptions.DeltaError as error:
        raise _unsuited(table.table_uri, error) from error
    for fragment in fragments:
        yield from (RowGroup(fragment, group) for group in range(fragment.num_row_groups))


def _batches(piece: RowGroup, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield a piece's rows, so many at a time: a dataset would have all of a row group in memory."""
    with piece.file.open() as opened:
        # Spark writes times as INT96, without a zone
        file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us", buffer_size=_BUFFER_BYTES, pre_buffer=False)
        for batch in file.iter_batches(rows, [piece.group], list(columns), use_threads=False):
            yield batch.select(list(columns)).cast(pa.schema([_FIELDS[name] for name in columns]))


def _unsuited(path: str, error: Exception) -> TableUnsuited:
    return TableUnsuited(
        f"The table {path} asks for a reader that only Spark is ({type(error).__name__}).",
        "`demux reconcile --spark` counts it; `SELECT * FROM delta.` and its path in backticks shows its rows.",
        table=path,
    )
