"""The files that a Delta table has now, by its log, with one request for each file of the log that is needed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from demux.core.delta.log import commit_name, commits_among, newest_checkpoint
from demux.core.storage.files import Storage


@dataclass(frozen=True, slots=True)
class FileSize:
    """A file that a table has now: its bytes, and its rows that are not deleted; None where the log does not say."""

    bytes: int
    rows: int | None


def live_files(storage: Storage, table: str, names: Iterable[str]) -> Collection[FileSize] | None:
    """Return the files that a table has now; None where its log asks for more than a checkpoint and commits.

    Reads the newest checkpoint and the commits after it, each by one request: `deltalake` asks for more.

    Args:
        names: of its log's files.
    """
    names = tuple(names)
    log, checkpoint = f"{table}/_delta_log", newest_checkpoint(names)
    commits = sorted(version for version in commits_among(names) if version > checkpoint.version)
    first = checkpoint.version + 1
    if (first == 0 and not commits) or commits != list(range(first, first + len(commits))):
        return None
    found: dict[tuple[str, str | None], FileSize] = {}
    for name in checkpoint.files:
        adds = _adds_of_checkpoint(storage, f"{log}/{name}")
        if adds is None:
            return None
        found |= {_file_key(add): _live(add) for add in adds}
    for version in commits:
        # not splitlines: JSON allows a line separator of Unicode inside a text
        lines = storage.read_text(f"{log}/{commit_name(version)}").split("\n")
        actions = [json.loads(line) for line in lines if line]
        for gone in (action["remove"] for action in actions if "remove" in action):
            found.pop(_file_key(gone), None)
        found |= {_file_key(action["add"]): _live(action["add"]) for action in actions if "add" in action}
    return found.values()


def _adds_of_checkpoint(storage: Storage, path: str) -> list[dict[str, Any]] | None:
    """Return the files in a checkpoint's file; None where it names further files (version 2)."""
    if path.endswith(".json"):
        return None
    wanted = ("add.path", "add.size", "add.stats", "add.deletionVector", "sidecar.path")
    rows = pq.ParquetFile(pa.BufferReader(storage.read(path))).read(columns=[*wanted]).to_pylist()
    if any(row.get("sidecar") for row in rows):
        return None
    return [add for row in rows if (add := row["add"])]


def _file_key(action: Mapping[str, Any]) -> tuple[str, str | None]:
    # a file is there once for each state of its deleted rows
    vector = action.get("deletionVector") or {}
    return unquote(action["path"]), vector.get("pathOrInlineDv")


def _live(add: Mapping[str, Any]) -> FileSize:
    rows = json.loads(add.get("stats") or "{}").get("numRecords")
    deleted = (add.get("deletionVector") or {}).get("cardinality", 0)
    return FileSize(add["size"], None if rows is None else rows - deleted)
