"""What Delta's log says about a file's columns, from the file's own footer. Pure.

Readers leave files out by these: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1)
# longer ones are cut
_TEXT_LENGTH = 32
_LAST_CHARACTER = "\U0010ffff"

Value = int | bool | str


@dataclass(frozen=True, slots=True)
class _ColumnChunk:
    """What a footer says of a column in one row group; a copy, as pyarrow's own points into what may be gone.

    Attributes:
        nulls: how many NULLs it has; None where that is not known.
        bounds: the least and the greatest value; None without values, or where they are not known.
    """

    kind: str
    logical: str
    nulls: int | None
    bounds: tuple[Any, Any] | None
    is_empty: bool


def stats_of(metadata: Any) -> dict[str, Any]:
    """Return `numRecords`, `nullCount`, and `minValues` and `maxValues` where every top-level column has them.

    All or none: deltalake's own reader takes a column that is not among some others for one without values, and leaves
    the file out of any search for one (1.6.6). Numbers with fractions have none: a footer does not say of NaN.

    Args:
        metadata: a `pyarrow.parquet.FileMetaData`; times in microseconds.
    """
    columns = dict(_columns(metadata))
    nulls = {name: [part.nulls for part in parts] for name, parts in columns.items()}
    bounds = {name: _bounds(parts) for name, parts in columns.items()}
    stats = {
        "numRecords": metadata.num_rows,
        "nullCount": {name: sum(n for n in counts if n) for name, counts in nulls.items() if None not in counts},
    }
    if None in bounds.values():
        return stats
    known = {name: found for name, found in bounds.items() if found}
    return {
        **stats,
        "minValues": {name: found[0] for name, found in known.items()},
        "maxValues": {name: found[1] for name, found in known.items()},
    }


def _columns(metadata: Any) -> Iterator[tuple[str, list[_ColumnChunk]]]:
    """Yield each top-level column that may have bounds, with what the footer says of it in each row group."""
    for position in range(metadata.num_columns):
        column = metadata.schema.column(position)
        kind, logical = column.physical_type, column.logical_type.type
        # bytes have no bounds, and what is inside of others has none of its own
        if "." not in column.path and (kind != "BYTE_ARRAY" or logical == "STRING"):
            groups = range(metadata.num_row_groups)
            yield column.path, [_column(metadata.row_group(group), position, kind, logical) for group in groups]


def _column(group: Any, position: int, kind: str, logical: str) -> _ColumnChunk:
    chunk = group.column(position)
    found = chunk.statistics
    if found is None:
        return _ColumnChunk(kind, logical, None, None, is_empty=False)
    bounds = None
    if found.has_min_max and kind in {"INT32", "INT64"}:
        bounds = found.min_raw, found.max_raw
    elif found.has_min_max and kind in {"BOOLEAN", "BYTE_ARRAY"}:
        bounds = found.min, found.max
    return _ColumnChunk(kind, logical, found.null_count, bounds, is_empty=found.num_values == 0)


def _bounds(parts: list[_ColumnChunk]) -> tuple[Value, Value] | tuple[()] | None:
    """Return the least and the greatest value as the log has them; () without values, None where they are not known."""
    found = [part.bounds for part in parts if not part.is_empty]
    if not found:
        return ()
    if None in found or parts[0].logical == "DECIMAL":
        return None
    least = min(bounds[0] for bounds in found if bounds)
    most = max(bounds[1] for bounds in found if bounds)
    if parts[0].kind == "BYTE_ARRAY":
        return least[:_TEXT_LENGTH], _cut_up(most)
    if parts[0].logical != "TIMESTAMP":
        return least, most
    # in milliseconds, outwards
    first, last = _time(least // 1000), _time(-(-most // 1000))
    return None if first is None or last is None else (first, last)


def _cut_up(text: str) -> str:
    """Return a text that is not less than this one; a cut one is, until its end is cut up."""
    if len(text) <= _TEXT_LENGTH or text[_TEXT_LENGTH] == _LAST_CHARACTER:
        return text
    return text[:_TEXT_LENGTH] + _LAST_CHARACTER


def _time(milliseconds: int) -> str | None:
    """Return a time as the log has it, None for one that no reader could read."""
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds") + "Z"
    except OverflowError:
        return None
