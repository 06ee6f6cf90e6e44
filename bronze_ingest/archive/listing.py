"""Which archived files a micro-batch is made of, as its query's checkpoint says; pure.

Spark skips a file that it listed and that is gone when the batch begins, with no more than a line in its log. The
checkpoint still names it: `offsets/<batch>` has a line for each source, `{"logOffset": n}` for one of files, and
`sources/<source>/<n>` names the files of n. Every tenth of these, `<n>.compact`, has those of all before it too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

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
