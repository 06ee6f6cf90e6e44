"""The application transactions in a Delta table's log, however old; read without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow.parquet as pq

from demux.core.delta.log import (
    LogCheckpoint,
    commit_name,
    commits_among,
    newest_checkpoint,
    transaction_in,
    transactions_in,
)
from demux.core.storage.files import Storage


@dataclass(frozen=True, slots=True)
class Transactions:
    """The newest version of each application's transactions, by its id, as of a version of the table; -1 for none."""

    version: int = -1
    by_id: Mapping[str, int] = field(default_factory=dict)


def transaction_of(storage: Storage, table: str, app_id: str) -> int | None:
    """Return the newest version of the application's transactions; None when there is none.

    Reads the newest commits first. Only where no commit since the last checkpoint has one, that is read.
    """
    log = f"{table}/_delta_log"
    names = storage.names(log)
    checkpoint = newest_checkpoint(names)
    for version in sorted(_commits(names, checkpoint.version), reverse=True):
        found = transaction_in(storage.read_text(f"{log}/{commit_name(version)}"), app_id)
        if found is not None:
            return found
    return _in_checkpoint(storage, log, checkpoint, app_id).get(app_id)


def transactions(storage: Storage, table: str, prefix: str, known: Transactions | None = None) -> Transactions:
    """Return the transactions of all applications whose id begins like this.

    Args:
        table: the table's path; it need not be there.
        prefix: of the ids.
        known: what an earlier call returned: then only newer commits are read, if they are all there.
    """
    log = f"{table}/_delta_log"
    names = storage.names(log)
    checkpoint = newest_checkpoint(names)
    newest = max(_commits(names, -1), default=checkpoint.version)
    if known is None or len(_commits(names, known.version)) != newest - known.version:
        known = Transactions(checkpoint.version, _in_checkpoint(storage, log, checkpoint, prefix))
    by_id = dict(known.by_id)
    for version in sorted(_commits(names, known.version)):
        by_id |= transactions_in(storage.read_text(f"{log}/{commit_name(version)}"), prefix)
    return Transactions(newest, by_id)


def _commits(names: Iterable[str], after: int) -> set[int]:
    return {version for version in commits_among(names) if version > after}


def _in_checkpoint(storage: Storage, log: str, checkpoint: LogCheckpoint, prefix: str) -> dict[str, int]:
    paths = [f"{log}/{name}" for name in checkpoint.files]
    if not paths:
        return {}
    if paths[0].endswith(".json"):
        return transactions_in(storage.read_text(paths[0]), prefix)
    found: dict[str, int] = {}
    for path in paths:
        with storage.open(path) as file:
            checkpoint_part = pq.ParquetFile(file)
            if "txn" not in checkpoint_part.schema_arrow.names:
                continue
            txns = checkpoint_part.read(columns=["txn.appId", "txn.version"]).column("txn").to_pylist()
        named = ((one["appId"], one["version"]) for one in txns if one is not None and one["appId"] is not None)
        found |= {app_id: version for app_id, version in named if app_id.startswith(prefix)}
    return found


@dataclass(frozen=True, slots=True)
class Batch:
    """Which micro-batch of which query this is: the identity of all that it writes.

    Attributes:
        query_id: the query's own id, from its checkpoint.
        batch_id: counts from 0 in the life of a checkpoint.
        retried: the batch was begun before, and may have written some of its tables.
    """

    query_id: str
    batch_id: int
    retried: bool
