"""The archived files of one micro-batch: all there, and read as when the batch was begun, also when it comes again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame

from demux.core.delta.app_transactions import Batch
from demux.core.delta.log import newest_transaction
from demux.core.errors import DemuxError, SettingsInvalid, StorageFailed
from demux.core.root.layout import Layout
from demux.core.settings.source import ArchiveSettings
from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import StreamCheckpoint, read_checkpoint
from demux.core.text import printable

_NOTE = "archive.json"
_FROM_WORKER = re.compile(r"\[STORAGE_FAILED\] (?P<message>The archived file .*?\.) (?P<remedy>(?:Put|Correct) .*)")

OnBatch = Callable[[DataFrame, Batch], None]
Reading = dict[str, str | None]


def require_same_reading(layout: Layout, settings: ArchiveSettings) -> None:
    """Check that archived files of an interrupted batch would be read as when it was begun; call it before the query.

    Notes in the checkpoint how files are read from now on. A second call changes nothing.

    Raises:
        SettingsInvalid: they would not: some of their records would come otherwise, or not at all.
    """
    note = f"{layout.bronze_checkpoint}/{_NOTE}"
    now: Reading = {"path": settings.path, "format": settings.format.value, "pattern": settings.pattern}
    before = json.loads(layout.storage.read_text(note)) if layout.storage.exists(note) else {}
    if before == now:
        return
    changed = {name for name in before if now[name] != before[name]}
    found = read_checkpoint(layout.storage, layout.bronze_checkpoint)
    if (
        changed
        and found.unfinished is not None
        and _listings(layout.storage, layout.bronze_checkpoint, found.unfinished)
    ):
        if changed == {"path"}:
            # spark knows the batch's files by their whole paths; the note is about them
            return
        if changed != {"format"} or _is_written(layout, found):
            raise _read_otherwise(found.unfinished, before)
    layout.storage.write_text(note, json.dumps(now))


def _read_otherwise(batch_id: int, before: Reading) -> SettingsInvalid:
    then = f"`archive.format: {before['format']}` and `archive.pattern: {before['pattern'] or 'null'}`"
    return SettingsInvalid(
        f"Batch {batch_id} of bronze was interrupted, and has files of {before['path']} that were read with {then}.",
        "Put these settings back until a run has gone through, and change them then.",
        **before,
    )


def _is_written(layout: Layout, checkpoint: StreamCheckpoint) -> bool:
    """Return whether a table has something of the unfinished batch."""
    assert checkpoint.query_id is not None
    tables = [table for table in (layout.bronze, layout.quarantine) if layout.storage.table_exists(table)]
    return any(
        newest_transaction(layout.storage, table, checkpoint.query_id) == checkpoint.unfinished for table in tables
    )


def with_files(storage: Storage, checkpoint: str, on_batch: OnBatch) -> OnBatch:
    """Return `on_batch` with the archive watched: every file of a batch is there, or the batch fails.

    What it returns raises:
        StorageFailed: a file is gone, which Spark would leave out in silence, or a worker cannot read it.
    """

    def watched(frame: DataFrame, batch: Batch) -> None:
        _require_files(storage, checkpoint, batch.batch_id)
        try:
            on_batch(frame, batch)
        except Exception as error:
            # spark hands on what a worker raised as the text of a traceback
            found = None if isinstance(error, DemuxError) else _FROM_WORKER.search(str(error))
            if found is None:
                raise
            raise StorageFailed(found["message"], found["remedy"]) from error

    return watched


def _require_files(storage: Storage, checkpoint: str, batch_id: int) -> None:
    for listing in _listings(storage, checkpoint, batch_id):
        folder = f"{checkpoint}/sources/{listing.source}"
        names = set(storage.names(folder))
        for entry in range(listing.after + 1, listing.last + 1):
            name = str(entry) if str(entry) in names else f"{entry}.compact"
            for uri in files_of(storage.read_text(f"{folder}/{name}"), listing):
                _require_file(storage, uri)


def _listings(storage: Storage, checkpoint: str, batch_id: int) -> list[Listing]:
    before = storage.read_text(f"{checkpoint}/offsets/{batch_id - 1}") if batch_id else None
    return listings(storage.read_text(f"{checkpoint}/offsets/{batch_id}"), before)


def _require_file(storage: Storage, uri: str) -> None:
    path = unquote(uri)
    if not storage.exists(path):
        name = printable(path)
        raise StorageFailed(
            f"The archived file {name} is gone since this batch was begun.",
            "Put it back, or an empty file in its place if its records are to be left out, and run again.",
            path=name,
        )


# a line with the format's version, and one with the query's settings
_HEADER_LINES = 2


@dataclass(frozen=True, slots=True)
class Listing:
    """What one source of files gives to a batch: the files of the log entries `after` < n <= `last`."""

    source: int
    after: int
    last: int


def listings(offsets: str, before: str | None) -> list[Listing]:
    """Return what each source of files gives to a batch; none where it gives nothing.

    Args:
        offsets: the text of `offsets/<batch>`.
        before: the text of the batch before it; None for the first batch.
    """
    ends = _log_offsets(offsets)
    begins = _log_offsets(before) if before is not None else {}
    found = [Listing(source, begins.get(source, -1), last) for source, last in ends.items()]
    return [listing for listing in found if listing.last > listing.after]


def files_of(log: str, listing: Listing) -> list[str]:
    """Return the URIs (percent-encoded) that a log's text names for the listing."""
    entries = (json.loads(line) for line in log.splitlines()[1:] if line)
    return [entry["path"] for entry in entries if listing.after < entry["batchId"] <= listing.last]


def _log_offsets(offsets: str) -> dict[int, int]:
    lines = offsets.splitlines()[_HEADER_LINES:]
    parsed = {source: _parsed(line) for source, line in enumerate(lines)}
    return {source: value for source, value in parsed.items() if value is not None}


def _parsed(line: str) -> int | None:
    try:
        offset: Any = json.loads(line)
    except ValueError:
        # `-`: this source has not begun
        return None
    value = offset.get("logOffset") if isinstance(offset, dict) else None
    return value if isinstance(value, int) else None
