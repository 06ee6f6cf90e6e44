"""Commits to a Delta table whose newest version is known: one file each, which adds or replaces files, or columns.

`deltalake` reads all that the log says since its last checkpoint before each commit, and again after it: several
milliseconds for a table that a process alone writes and knows. What such a commit holds, and that its file is made only
where there is none, is Delta's protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from demux.core.columns.types import Struct
from demux.core.delta.log import commit_name
from demux.core.delta.parquet_writer import TableFile, TableWriter, append_files, suits, takes_files
from demux.core.extras import deltalake
from demux.core.storage.files import Storage

_ENGINE = "protobuf-demux"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Files of a table that go in one commit, and what comes for them.

    Attributes:
        operation: what the table's history says of it.
        removed: sizes in bytes by path, as the log has it.
        transactions: versions of application transactions by id.
        schema: the table's from then on, as Spark writes schemas; None: it stays.
        description: what the table says of itself; None: what it said before.
        mark: the commit's `userMetadata`; None: none.
        partition: values of the partition that all these files are of, by column; empty without partitions.
    """

    operation: str
    removed: Mapping[str, int]
    added: Sequence[TableFile] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    description: str | None = None
    mark: str | None = None
    partition: Mapping[str, str] = field(default_factory=dict)

    def commit(self, storage: Storage, table: deltalake.DeltaTable, path: str) -> bool:
        """Replace the files in the commit after the version that was read; return whether that was possible.

        It is not where another writer has made that commit: what is replaced may be another thing then.

        Args:
            table: the table as it was read; `replaces_files` allows it.

        Raises:
            OSError: the disk, or a file system without hard links; nothing was committed.
            DemuxError: the store; the commit may be there, or not.
        """
        return _commit(storage, table.version(), path, _text(_replacing(table, self, int(time.time() * 1000))))


def append_after(
    storage: Storage, version: int, table: str, files: Sequence[TableFile], transactions: Mapping[str, int]
) -> bytes | None:
    """Append files to an unpartitioned table in the commit after this version; return its text, None without one.

    It is not possible where another writer has made that commit, or where this version is not there: read the table
    again then, for it may ask more of its writers. Nothing else can have changed, as a commit is there as a whole or
    not at all.

    Args:
        version: the table's newest, as far as is known; its protocol and its schema take the files.
        files: what is appended, named by plain ASCII.

    Raises:
        OSError: the disk, or a file system without hard links; nothing was committed.
        DemuxError: the store; the commit may be there, or not.
    """
    text = _text(_appending(files, transactions, int(time.time() * 1000)))
    return text if _commit(storage, version, table, text) else None


def join_after(
    storage: Storage, version: int, table: str, removed: Mapping[str, int], added: Sequence[TableFile]
) -> bytes | None:
    """Put files in place of others that have the same rows, as `append_after`; this version was read just now.

    Args:
        version: the table's newest.
        table: the path or URI of an unpartitioned table.
        removed: sizes in bytes by path, as the log has it.
    """
    now_ms = int(time.time() * 1000)
    actions = [_info(now_ms, "OPTIMIZE", {}, is_append=False), *_moved(removed, added, now_ms, {}, is_change=False)]
    text = _text(actions)
    return text if storage.create(f"{table}/_delta_log/{commit_name(version + 1)}", text) else None


def append_rows(
    storage: Storage, table: deltalake.DeltaTable, path: str, columns: Struct, rows: Iterable[pa.RecordBatch]
) -> None:
    """Append rows to an unpartitioned table in one commit, whatever others append meanwhile; not safe to repeat.

    A commit whose answer is lost is not made again: the commit's file says whose it is.

    Args:
        table: the table as it was read; it is read again where others have written it since.

    Raises:
        OSError: the disk, or a file system without hard links; nothing was committed.
        DemuxError: the store; the commit may be there, or not.
    """
    with TableWriter(storage, path, columns) as writer:
        for batch in rows:
            writer.add(batch)
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
        table: the table as it was read, at its newest version as far as is known.
        schema: as Spark writes schemas: the columns that are there, with their types, and further ones.
        description: what the table says of itself; None: what it said before.

    Raises:
        OSError: the disk, or a file system without hard links; nothing was committed.
        DemuxError: the store; the commit may be there, or not.
    """
    info = _info(int(time.time() * 1000), "CHANGE COLUMNS", {}, is_append=False)
    return _commit(storage, table.version(), path, _text([info, _metadata(table, schema, description)]))


def replaces_files(table: deltalake.DeltaTable, partition_by: Sequence[str] = ()) -> bool:
    """Return whether files of the table, which has these partition columns, may be replaced without Spark.

    It allows that rows go, and nobody reads its changes: only Spark says which rows of a new file are no change.
    """
    metadata = table.metadata()
    asked = ("delta.appendOnly", "delta.enableChangeDataFeed")
    is_plain = not any(metadata.configuration.get(name, "false").lower() == "true" for name in asked)
    constrained = any(name.startswith("delta.constraints.") for name in metadata.configuration)
    is_partitioned_so = metadata.partition_columns == [*partition_by]
    return is_plain and not constrained and is_partitioned_so and takes_files(table) and suits(table)


def _commit(storage: Storage, version: int, table: str, text: bytes) -> bool:
    log = f"{table}/_delta_log"
    if not storage.exists(f"{log}/{commit_name(version)}"):
        return False
    return storage.create(f"{log}/{commit_name(version + 1)}", text)


def _text(actions: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions).encode()


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


def _metadata(table: deltalake.DeltaTable, schema: Mapping[str, Any], description: str | None) -> dict[str, Any]:
    before = table.metadata()
    comment = description or before.description
    return {
        "metaData": {
            "id": before.id,
            **({"name": before.name} if before.name else {}),
            **({"description": comment} if comment else {}),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema, separators=(",", ":")),
            "partitionColumns": before.partition_columns,
            "configuration": before.configuration,
            "createdTime": before.created_time,
        }
    }


def _appending(files: Sequence[TableFile], transactions: Mapping[str, int], now_ms: int) -> Iterator[dict[str, Any]]:
    yield _info(now_ms, "WRITE", {"mode": "Append", "partitionBy": "[]"}, is_append=True)
    yield from _transactions(transactions, now_ms)
    yield from _moved({}, files, now_ms, {}, is_change=True)


def _replacing(table: deltalake.DeltaTable, wanted: Replacement, now_ms: int) -> Iterator[dict[str, Any]]:
    info = _info(now_ms, wanted.operation, {}, is_append=False)
    if wanted.mark is not None:
        info["commitInfo"]["userMetadata"] = wanted.mark
    yield info
    if wanted.schema is not None:
        yield _metadata(table, wanted.schema, wanted.description)
    yield from _transactions(wanted.transactions, now_ms)
    yield from _moved(wanted.removed, wanted.added, now_ms, wanted.partition, is_change=True)


def _transactions(transactions: Mapping[str, int], now_ms: int) -> Iterator[dict[str, Any]]:
    for app_id, number in transactions.items():
        yield {"txn": {"appId": app_id, "version": number, "lastUpdated": now_ms}}


def _moved(
    removed: Mapping[str, int],
    added: Sequence[TableFile],
    now_ms: int,
    partition: Mapping[str, str],
    *,
    is_change: bool,
) -> Iterator[dict[str, Any]]:
    for path, size in removed.items():
        yield {
            "remove": {
                "path": path,
                "deletionTimestamp": now_ms,
                "dataChange": is_change,
                "extendedFileMetadata": True,
                "partitionValues": dict(partition),
                "size": size,
            }
        }
    for file in added:
        yield {
            "add": {
                "path": file.path,
                "partitionValues": dict(partition),
                "size": file.bytes,
                "modificationTime": now_ms,
                "dataChange": is_change,
                "stats": file.stats,
            }
        }
