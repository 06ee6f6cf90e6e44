"""Reads quarantine, in pieces, without Spark; writes nothing.

Rows are looked at in few columns; whole rows are read only where they are shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demux.core.columns.arrow import arrow_fields
from demux.core.delta.scan import DataFile, data_files, open_readable, table_rows
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
        self._storage = layout.storage
        table = _opened(layout, layout.quarantine)
        self._files = [] if table is None else data_files(table, layout.quarantine)

    def groups(self, choice: QuarantineFilter) -> tuple[QuarantineGroup, ...]:
        """Return the groups of the selected rows, the largest first."""
        found = Grouping(choice)
        self._look(found, COLUMNS)
        return found.groups

    def newest(self, choice: QuarantineFilter, most: int) -> tuple[int, tuple[QuarantineRecord, ...]]:
        """Return the number of selected rows, and the newest of them, newest first."""
        found = NewestRows(choice, most)
        self._look(found, COLUMNS if choice.record_id is None else (*COLUMNS, "record_id"))
        records = self.records(found.places)
        return found.rows, tuple(records[place] for place in found.places)

    def records(self, places: Iterable[RowLocation]) -> dict[RowLocation, QuarantineRecord]:
        """Return whole rows by place."""
        by_file: defaultdict[int, set[int]] = defaultdict(set)
        for place in places:
            by_file[place.file].add(place.row)
        return {
            RowLocation(file, row): record_of(values)
            for file, rows in by_file.items()
            for row, values in self._rows(self._files[file], rows)
        }

    def _look(self, counting: Grouping | NewestRows, columns: Sequence[str]) -> None:
        for number, file in enumerate(self._files):
            begin = 0
            with self._opened(file) as opened:
                for batch in _batches(opened, columns, _FEW_COLUMNS_ROWS):
                    counting.add(batch, RowLocation(number, begin))
                    begin += len(batch)

    def _rows(self, file: DataFile, wanted: set[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        begin = 0
        with self._opened(file) as opened:
            for group in range(opened.num_row_groups):
                end = begin + opened.metadata.row_group(group).num_rows
                if any(begin <= row < end for row in wanted):
                    for batch in _batches(opened, [column.name for column in QUARANTINE], _WHOLE_ROWS, [group]):
                        for row in sorted(row for row in wanted if begin <= row < begin + len(batch)):
                            (values,) = _with_known_time(batch.slice(row - begin, 1)).to_pylist()
                            yield row, values
                        begin += len(batch)
                begin = end

    @contextmanager
    def _opened(self, file: DataFile) -> Iterator[Any]:
        with self._storage.open(file.path, file.size) as opened:
            # Spark 3.4 writes times as INT96, without a zone
            yield pq.ParquetFile(opened, coerce_int96_timestamp_unit="us", buffer_size=_BUFFER_BYTES)


def _with_known_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows without times that Python has not: a producer may say any year."""
    at, kind = rows.column("timestamp"), pa.timestamp("us", tz="UTC")
    # not at import: this loads pandas, where it is installed
    first, last = (pa.scalar(one.replace(tzinfo=timezone.utc), kind) for one in (datetime.min, datetime.max))
    is_known = pc.and_(pc.greater_equal(at, first), pc.less_equal(at, last))
    return rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", pc.if_else(is_known, at, None))


def games_of(layout: Layout) -> frozenset[str]:
    """Return the games that are in bronze or known, by what the tables' logs say."""
    known = _opened(layout, layout.games)
    found: set[str | None] = set()
    if known is not None:
        for batch in table_rows(layout.storage, known, layout.games, ["game_name"]):
            found.update(batch.column(0).to_pylist())
    bronze = _opened(layout, layout.bronze)
    if bronze is not None:
        found.update(file.constants.get("game_name") for file in data_files(bronze, layout.bronze))
    return frozenset(game for game in found if game is not None)


def schemas_of(layout: Layout, refs: Collection[SchemaRef]) -> KeptSchemas:
    """Return the kept schemas among those that the rows name."""
    ids = pa.array({ref.schema_id for ref in refs if ref.schema_id is not None}, pa.int32())
    guids = pa.array({ref.guid for ref in refs if ref.guid is not None}, pa.string())
    table = _opened(layout, layout.schemas)
    if table is None:
        return KeptSchemas({}, {}, {})
    rows, subjects = [], defaultdict[str, set[str]](set)
    for batch in table_rows(layout.storage, table, layout.schemas, _SCHEMA):
        named = [pc.is_in(batch.column(name), values) for name, values in (("schema_id", ids), ("guid", guids))]
        rows += batch.filter(pc.or_(*named)).to_pylist()
        for row in batch.select(["registry", "subject"]).to_pylist():
            subjects[row["registry"]].add(row["subject"])
    by_id = shared_schemas(rows)
    return KeptSchemas(
        by_id,
        {(row["registry"], row["guid"]): by_id[row["registry"], row["schema_id"]] for row in rows if row["guid"]},
        {registry: frozenset(names) for registry, names in subjects.items()},
    )


def _opened(layout: Layout, path: str) -> deltalake.DeltaTable | None:
    try:
        return open_readable(layout.storage, path)
    except deltalake.exceptions.TableNotFoundError:
        return None
    except TableUnsuited as error:
        raise TableUnsuited(
            error.message,
            "`demux reconcile --spark` counts it; `SELECT * FROM delta.` and its path in backticks shows its rows.",
            table=path,
        ) from error


def _batches(
    file: Any, columns: Sequence[str], rows: int, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an open file, or of some of its row groups, so many at a time."""
    fields = pa.schema([_FIELDS[name] for name in columns])
    for batch in file.iter_batches(rows, groups, list(columns), use_threads=False):
        yield batch.select(list(columns)).cast(fields)
