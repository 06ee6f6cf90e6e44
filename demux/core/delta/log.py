"""What a Delta table's log says without reading the table: its version, and which partitions grew since another one."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from demux.core.storage.files import Storage

_ABSOLUTE = re.compile(r"/|[a-z][a-z0-9+.-]*:/")
# in one file, in parts, or with a UUID (https://github.com/delta-io/delta/blob/master/PROTOCOL.md#checkpoints)
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)")
_COMMIT = re.compile(r"(\d{20})\.json")
# the query writes every batch to its table: more commits in between would be of another writer
_COMMITS_LOOKED_AT = 10


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that a commit added to a partitioned table.

    Attributes:
        path: below the table, or absolute, decoded from the log's own writing.
        partition: value of the partition column; None for the NULL partition, or a table that has no such column.
        rows: how many it has; None where the log does not say.
        whole: whether all its rows count: it has no deletion vector.
    """

    path: str
    partition: str | None
    bytes: int
    rows: int | None
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit did to a table's rows; files that only moved (OPTIMIZE) are left out.

    Attributes:
        version: the table's version after it.
        added: the files with new rows, in the log's order.
        removed: partition by path of files whose rows it took away, or rewrote.
        at_once: its files are those of several commits, and are read together or not at all.
    """

    version: int
    added: tuple[AddedFile, ...]
    removed: Mapping[str, str | None] = field(default_factory=dict)
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class PartitionGrowth:
    """What came to a partitioned table after a version.

    Attributes:
        commits: the commits since, in order; None when the log does not reach back.
    """

    version: int
    commits: tuple[Commit, ...] | None

    @property
    def partitions(self) -> frozenset[str] | None:
        """Values of the partition column whose partitions got rows; None when the log does not reach back."""
        if self.commits is None:
            return None
        added = (file.partition for commit in self.commits for file in commit.added)
        return frozenset(value for value in added if value is not None)


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """The newest checkpoint of a log: its version, -1 for none, and its files."""

    version: int
    files: tuple[str, ...]


def file_path(table: str, path: str) -> str:
    """Return where a file of a table is, by the path that the log has, percent escapes decoded."""
    return path if _ABSOLUTE.match(path) else f"{table}/{path}"


def growth(storage: Storage, table: str, column: str, since: int) -> PartitionGrowth:
    """Return what came in the commits after version `since` (-1: in all commits).

    Reads one small file for each commit after `since`, no data and no checkpoint.
    """
    # from the last one on that is known, which is there unless the table was made again
    commits = _commits(storage, table, commit_name(since - 1)) if since > 0 else set()
    commits = commits or _commits(storage, table)
    latest = max(commits, default=-1)
    wanted = range(since + 1, latest + 1)
    # a table that was made again counts from 0
    if since > latest or any(version not in commits for version in wanted):
        return PartitionGrowth(latest, None)
    return PartitionGrowth(
        latest, tuple(commit_in(version, _text(storage, table, version), column) for version in wanted)
    )


def commit_in(version: int, text: str, column: str) -> Commit:
    """Return what a commit file says.

    Args:
        text: the commit file's, one JSON action on each line.
    """
    added: list[AddedFile] = []
    removed: dict[str, str | None] = {}
    for line in _lines(text):
        kind = next((kind for kind in ("add", "remove") if line.startswith(f'{{"{kind}"')), None)
        action = json.loads(line)[kind] if kind else {}
        # a rewrite (OPTIMIZE) moves rows that were there before
        if not action.get("dataChange", True):
            continue
        match kind:
            case "add":
                added.append(_added(action, column))
            case "remove":
                removed[unquote(action["path"])] = (action.get("partitionValues") or {}).get(column)
    return Commit(version, tuple(added), removed)


def _added(action: Mapping[str, Any], column: str) -> AddedFile:
    stats = json.loads(action.get("stats") or "{}")
    return AddedFile(
        unquote(action["path"]),
        action["partitionValues"].get(column),
        action.get("size", 0),
        stats.get("numRecords"),
        whole=not action.get("deletionVector"),
    )


def newest_checkpoint(names: Iterable[str]) -> LogCheckpoint:
    """Return the newest checkpoint that is whole, from the names of a log's files."""
    whole: dict[int, list[str]] = {}
    parts: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for name in names:
        if (found := _CHECKPOINT.fullmatch(name)) is None:
            continue
        if found["parts"]:
            parts[int(found[1]), int(found["parts"])].append(name)
        else:
            whole[int(found[1])] = [name]
    whole |= {version: files for (version, all_parts), files in parts.items() if len(files) == all_parts}
    newest = max(whole, default=-1)
    return LogCheckpoint(newest, tuple(whole.get(newest, ())))


def newest_version(storage: Storage, table: str) -> int:
    """Return the table's version; -1 where there is no table."""
    return max(_commits(storage, table), default=-1)


def newest_transaction(storage: Storage, table: str, app_id: str) -> int | None:
    """Return the application's newest transaction version in the table's newest commits, None if none."""
    commits = _commits(storage, table)
    for version in sorted(commits, reverse=True)[:_COMMITS_LOOKED_AT]:
        found = transaction_in(_text(storage, table, version), app_id)
        if found is not None:
            return found
    return None


def transaction_in(commit: str, app_id: str) -> int | None:
    """Return the application's transaction version in a commit file's text, if it has one."""
    return transactions_in(commit, app_id).get(app_id)


def transactions_in(commit: str, prefix: str) -> dict[str, int]:
    """Return versions by application id, of ids that begin like this, in a commit file's text."""
    found = (json.loads(line)["txn"] for line in _lines(commit) if line.startswith('{"txn"'))
    return {txn["appId"]: int(txn["version"]) for txn in found if txn["appId"].startswith(prefix)}


def commit_name(version: int) -> str:
    """Return the name of a commit's file."""
    return f"{version:020}.json"


def commits_among(names: Iterable[str]) -> set[int]:
    """Return the versions whose commits are among the names of a log's files."""
    return {int(found[1]) for name in names if (found := _COMMIT.fullmatch(name))}


def _lines(commit: str) -> list[str]:
    # not splitlines: JSON allows a line separator of Unicode inside a text
    return commit.split("\n")


def _commits(storage: Storage, table: str, after: str | None = None) -> set[int]:
    return commits_among(storage.names(f"{table}/_delta_log", after))


def _text(storage: Storage, table: str, version: int) -> str:
    return storage.read_text(f"{table}/_delta_log/{commit_name(version)}")
