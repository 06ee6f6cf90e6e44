"""The rows of a checkpoint from those of the one before and the actions since. Pure.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md#action-reconciliation
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from demux.core.delta.checkpoint.log_tail import LogTail

_DAY_MS = 86_400_000
# delta.deletedFileRetentionDuration, where no property says another one
_KEPT_MS = 7 * _DAY_MS
_KINDS = frozenset({"add", "remove", "txn"})
_UNKEPT = frozenset({"commitInfo", "cdc"})
_ROWS = frozenset({*_KINDS, "protocol", "metaData", "domainMetadata", "sidecar", "checkpointMetadata"})
_PROPERTIES = ("delta.checkpoint", "delta.deletedFileRetentionDuration")


def next_rows(tail: LogTail, now_ms: int) -> pa.Table | None:
    """Return the rows of a checkpoint of the newest version; None where they are for `deltalake` to find.

    So it is for a first checkpoint, for changes of the schema or the protocol, and for tables with properties that say
    what a checkpoint has. The columns are those of the checkpoint before.
    """
    before = tail.checkpoint
    if before is None or not _is_plain(before):
        return None
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for action in tail.actions():
        (kind,) = action.keys() & _KINDS or (None,)
        if kind is None:
            if action.keys() <= _UNKEPT:
                continue
            return None
        newest[_key_of(kind, action[kind])] = action
    kept = [_is_kept(row, newest, now_ms) for row in _keys_in(before)]
    new = [{kind: _row(values) for kind, values in action.items()} for action in newest.values()]
    return pa.concat_tables([before.filter(pa.array(kept, pa.bool_())), pa.Table.from_pylist(new, before.schema)])


def _is_plain(rows: pa.Table) -> bool:
    if not _KINDS <= {*rows.column_names} <= _ROWS:
        return False
    if any(name in rows.column_names and len(rows) > rows.column(name).null_count for name in ("sidecar",)):
        return False
    added = {field.name for field in rows.schema.field("add").type}
    if added & {"stats_parsed", "partitionValues_parsed"} or not {"path", "size", "stats"} <= added:
        return False
    metadata = rows.column("metaData").combine_chunks().drop_null().to_pylist()
    if len(metadata) != 1 or metadata[0]["partitionColumns"]:
        return False
    return not any(name.startswith(_PROPERTIES) for name, _ in metadata[0]["configuration"] or ())


def _keys_in(rows: pa.Table) -> list[tuple[str, str, int] | None]:
    """Return kind, key and time of deletion of each row; None of those that always stay."""
    found: list[tuple[str, str, int] | None] = [None] * len(rows)
    for kind, key, at in (("add", "path", None), ("remove", "path", "deletionTimestamp"), ("txn", "appId", None)):
        column = rows.column(kind).combine_chunks()
        keys = column.field(key).to_pylist()
        times = column.field(at).to_pylist() if at else [0] * len(keys)
        for number, is_there in enumerate(column.is_valid().to_pylist()):
            if is_there:
                found[number] = kind, keys[number], times[number] or 0
    return found


def _is_kept(row: tuple[str, str, int] | None, newest: Mapping[tuple[str, str], Any], now_ms: int) -> bool:
    if row is None:
        return True
    kind, key, deleted_ms = row
    if _group(kind, key) in newest:
        return False
    return kind != "remove" or deleted_ms >= now_ms - _KEPT_MS


def _key_of(kind: str, action: Mapping[str, Any]) -> tuple[str, str]:
    return _group(kind, action["appId" if kind == "txn" else "path"])


def _group(kind: str, key: str) -> tuple[str, str]:
    # a file is either there or removed
    return ("txn" if kind == "txn" else "file", key)


def _row(values: Any) -> Any:
    """Return an action in the form that Arrow takes: a map is a list of pairs."""
    if not isinstance(values, dict):
        return values
    return {
        name: [*value.items()] if name in ("partitionValues", "tags") and isinstance(value, dict) else value
        for name, value in values.items()
    }
