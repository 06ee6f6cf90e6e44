"""What Delta's log says about a file's columns, from the file's own footer. Pure.

Readers leave files out by these: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1)
_WHOLE = {"INT32", "INT64"}


def stats_of(metadata: Any) -> dict[str, Any]:
    """Return `numRecords`, and `minValues`, `maxValues` and `nullCount` of the top-level whole numbers and times.

    Args:
        metadata: a `pyarrow.parquet.FileMetaData`; times in microseconds.
    """
    lowest: dict[str, int] = {}
    highest: dict[str, int] = {}
    nulls: dict[str, int] = {}
    times: set[str] = set()
    for group in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            column = metadata.row_group(group).column(position)
            name, found = column.path_in_schema, column.statistics
            if found is None or "." in name or column.physical_type not in _WHOLE:
                continue
            if found.logical_type.type == "TIMESTAMP":
                times.add(name)
            nulls[name] = nulls.get(name, 0) + found.null_count
            if found.has_min_max:
                lowest[name] = min(lowest.get(name, found.min_raw), found.min_raw)
                highest[name] = max(highest.get(name, found.max_raw), found.max_raw)
    # a time in milliseconds, outwards
    first = {name: _time(value // 1000) if name in times else value for name, value in lowest.items()}
    last = {name: _time(-(-value // 1000)) if name in times else value for name, value in highest.items()}
    return {
        "numRecords": metadata.num_rows,
        "minValues": {name: value for name, value in first.items() if value is not None},
        "maxValues": {name: value for name, value in last.items() if value is not None},
        "nullCount": nulls,
    }


def _time(milliseconds: int) -> str | None:
    """Return a time as the log has it, None for one that no reader could read."""
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds") + "Z"
    except OverflowError:
        return None
