"""Commits to a Delta table whose newest version is known: one small file each, which appends, or gives another schema.

`deltalake` reads all that the log says since its last checkpoint before each commit, and again after it: several
milliseconds for a table that a process alone writes and knows. What such a commit holds, and that its file is made only
where there is none, is Delta's protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from demux.core.columns.types import Struct
from demux.core.delta.log import commit_name
from demux.core.delta.parquet_writer import TableFile, TableWriter, append_files, takes_files
from demux.core.extras import deltalake
from demux.core.storage.files import Storage

_ENGINE = "protobuf-demux"


def append_after(
    storage: Storage, version: int, table: str, files: Sequence[TableFile], transactions: Mapping[str, int]
) -> bool:
    """Append files to an unpartitioned table in the commit after this version; return whether that was possible.

    It is not where another writer has made that commit, or where this version is not there: read the table again then,
    for it may ask more of its writers. Nothing else can have changed, as a commit is there as a whole or not at all.

    Args:
        storage: how the table is reached.
        version: the table's newest, as far as is known; its protocol and its schema take the files.
        table: the table's path or URI.
        files: what is appended, named by plain ASCII.
        transactions: versions of application transactions by id.

    Raises:
        OSError: the disk, or a file system without hard links; nothing was committed.
        DemuxError: the store; the commit may be there, or not.
    """
    now_ms = int(time.time() * 1000)
    return _commit(storage, version, table, _appending(files, transactions, now_ms))


def append_rows(
    storage: Storage, table: deltalake.DeltaTable, path: str, columns: Struct, rows: pa.RecordBatch
) -> None:
    """Append rows to an unpartitioned table in one commit, whatever others append meanwhile; not safe to repeat.

    A commit whose answer is lost is not made again: the commit's file says whose it is.

    Args:
        storage: how the table is reached.
        table: the table as it was read; it is read again where others have written it since.
        path: its path or URI.
        columns: the table's.
        rows: in these columns.

    Raises:
        OSError: the disk, or a file system without hard links; nothing was committed.
        DemuxError: the store; the commit may be there, or not.
    """
    with TableWriter(storage, path, columns) as writer:
        writer.add(rows)
        files = writer.close()
    version = -1
    # what asks more of its writers, or has lost its newest commit, is deltalake's to judge
    while takes_files(table) and table.version() != version:
        version = table.version()
        if append_after(storage, version, path, files, {}):
            return
        table.update_incremental()
    append_files(table, files, None, {})


def alter_after(
    storage: Storage, table: deltalake.DeltaTable, path: str, schema: Mapping[str, Any], description: str | None = None
) -> bool:
    """Give a table another schema in the commit after the version that was read; return whether that was possible.

    It is not where another writer has made that commit. Everything else of the table's metadata stays.

    Args:
        storage: how the table is reached.
        table: the table as it was read, at its newest version as far as is known.
        path: its path or URI.
        schema: as Spark writes schemas: the columns that are there, with their types, and further ones.
        description: what the table says of itself; None: what it said before.

    Raises:
        OSError: the disk, or a file system without hard links; nothing was committed.
        DemuxError: the store; the commit may be there, or not.
    """
    before, now_ms = table.metadata(), int(time.time() * 1000)
    said = description or before.description
    metadata = {
        "id": before.id,
        **({"name": before.name} if before.name else {}),
        **({"description": said} if said else {}),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, separators=(",", ":")),
        "partitionColumns": before.partition_columns,
        "configuration": before.configuration,
        "createdTime": before.created_time,
    }
    info = _info(now_ms, "CHANGE COLUMNS", {}, is_append=False)
    return _commit(storage, table.version(), path, [info, {"metaData": metadata}])


def _commit(storage: Storage, version: int, table: str, actions: Iterable[Mapping[str, Any]]) -> bool:
    log = f"{table}/_delta_log"
    if not storage.exists(f"{log}/{commit_name(version)}"):
        return False
    text = "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions)
    return storage.create(f"{log}/{commit_name(version + 1)}", text.encode())


def _info(now_ms: int, operation: str, parameters: Mapping[str, str], *, is_append: bool) -> dict[str, Any]:
    return {
        "commitInfo": {
            "timestamp": now_ms,
            "operation": operation,
            "operationParameters": parameters,
            "isBlindAppend": is_append,
            "engineInfo": _ENGINE,
            "txnId": str(uuid.uuid4()),
        }
    }


def _appending(files: Sequence[TableFile], transactions: Mapping[str, int], now_ms: int) -> Iterator[dict[str, Any]]:
    yield _info(now_ms, "WRITE", {"mode": "Append", "partitionBy": "[]"}, is_append=True)
    for app_id, number in transactions.items():
        yield {"txn": {"appId": app_id, "version": number, "lastUpdated": now_ms}}
    for file in files:
        yield {
            "add": {
                "path": file.path,
                "partitionValues": {},
                "size": file.bytes,
                "modificationTime": now_ms,
                "dataChange": True,
                "stats": file.stats,
            }
        }
