"""What a Delta table's log says from its last checkpoint on, with one request for each file of it that is not known.

`deltalake` (1.6.6) reads each commit four times to join a table's files and to make a checkpoint.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from demux.core.delta.log import commit_name, commits_among, newest_checkpoint
from demux.core.storage.files import Storage

_LAST = "_last_checkpoint"
Actions = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LogTail:
    """The last checkpoint of a log, and the commits since.

    Attributes:
        since: the version of the checkpoint; -1 where there is none.
        checkpoint: its rows; None where there is none.
        commits: the actions of each commit since, the first one first.
    """

    since: int
    checkpoint: pa.Table | None
    commits: tuple[Actions, ...]

    @property
    def version(self) -> int:
        """The table's version."""
        return self.since + len(self.commits)

    def actions(self) -> Iterator[dict[str, Any]]:
        """Yield the actions of all commits since the checkpoint, in order."""
        for commit in self.commits:
            yield from commit

    def live(self) -> dict[str, int]:
        """Return the sizes in bytes of the files that the table has now, by path as the log has it."""
        found: dict[str, int] = {}
        if self.checkpoint is not None:
            adds = self.checkpoint.column("add").combine_chunks().drop_null()
            found = dict(zip(adds.field("path").to_pylist(), adds.field("size").to_pylist(), strict=True))
        for action in self.actions():
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
            elif "add" in action:
                found[action["add"]["path"]] = action["add"]["size"]
        return found


def read_tail(storage: Storage, table: str, known: Mapping[int, bytes]) -> LogTail | None:
    """Return the end of a table's log; None where it is not a checkpoint in one file and all commits since.

    Args:
        known: compressed texts of commits by version that this process has made: they are not read again.
    """
    log = f"{table}/_delta_log"
    sizes = {file.key: file.bytes for file in storage.files(log, _after(storage, log)) if "/" not in file.key}
    checkpoint = newest_checkpoint(sizes)
    versions = sorted(version for version in commits_among(sizes) if version > checkpoint.version)
    first = checkpoint.version + 1
    if not versions or versions != list(range(first, first + len(versions))) or len(checkpoint.files) > 1:
        return None
    if any(not name.endswith(".checkpoint.parquet") for name in checkpoint.files):
        return None

    def actions_of(version: int) -> Actions:
        text = zlib.decompress(known[version]) if version in known else None
        if text is None or len(text) != sizes[commit_name(version)]:
            text = storage.read(f"{log}/{commit_name(version)}")
        return parsed(text)

    with ThreadPoolExecutor(storage.side_by_side(table), thread_name_prefix="log") as pool:
        rows = [pool.submit(_rows, storage, f"{log}/{name}") for name in checkpoint.files]
        commits = tuple(pool.map(actions_of, versions))
        return LogTail(checkpoint.version, rows[0].result() if rows else None, commits)


def parsed(commit: bytes) -> Actions:
    """Return the actions of a commit's text."""
    # not splitlines: JSON allows a line separator of Unicode inside a text
    return [json.loads(line) for line in commit.decode().split("\n") if line]


def _after(storage: Storage, log: str) -> str | None:
    """Return a name that the last checkpoint and all commits since come after."""
    try:
        version = int(json.loads(storage.read(f"{log}/{_LAST}"))["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return f"{version:020}"


def _rows(storage: Storage, path: str) -> pa.Table:
    return pq.ParquetFile(pa.BufferReader(storage.read(path))).read()


def write_rows(storage: Storage, table: str, version: int, rows: pa.Table) -> None:
    """Write a checkpoint of a table's version, and where readers find it; a second call writes the same."""
    log, sink = f"{table}/_delta_log", pa.BufferOutputStream()
    pq.write_table(rows, sink)
    data = sink.getvalue().to_pybytes()
    storage.write(f"{log}/{version:020}.checkpoint.parquet", data)
    files = len(rows) - rows.column("add").null_count
    last = {"version": version, "size": len(rows), "sizeInBytes": len(data), "numOfAddFiles": files}
    storage.write(f"{log}/{_LAST}", json.dumps(last).encode())
