"""A commit that only appends, to a Delta table whose newest version is known: one small file.

`deltalake` reads all that the log says since its last checkpoint before each commit, and again after it: several
milliseconds for a table that a process alone writes and knows. What such a commit holds, and that its file is made only
where there is none, is Delta's protocol: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from demux.delta_log import commit_name
from demux.storage.files import Storage
from demux.table_files import TableFile

_ENGINE = "protobuf-demux"


def append_after(
    storage: Storage, version: int, table: str, files: Sequence[TableFile], transactions: Mapping[str, int]
) -> bool:
    """Append files to an unpartitioned table in the commit after this version; return whether that was possible.

    It is not where somebody else has made that commit, or where this version is not there: read the table again then,
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
    log = f"{table}/_delta_log"
    if not storage.exists(f"{log}/{commit_name(version)}"):
        return False
    text = _text(files, transactions, int(time.time() * 1000))
    return storage.create(f"{log}/{commit_name(version + 1)}", text.encode())


def _text(files: Sequence[TableFile], transactions: Mapping[str, int], now_ms: int) -> str:
    return "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in _actions(files, transactions, now_ms))


def _actions(files: Sequence[TableFile], transactions: Mapping[str, int], now_ms: int) -> Iterator[dict[str, Any]]:
    yield {
        "commitInfo": {
            "timestamp": now_ms,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": "[]"},
            "isBlindAppend": True,
            "engineInfo": _ENGINE,
            "txnId": str(uuid.uuid4()),
        }
    }
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
