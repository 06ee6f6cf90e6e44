"""What a commit that removes forgotten rows says of itself: who reads the table's log goes on over it. Pure."""

from __future__ import annotations

from demux.core.delta.log import has_metadata

# Delta's `userMetadata` of the commit
FORGOTTEN_ROWS = "demux: rows that were forgotten on request"


def only_forgets(commit: str) -> bool:
    """Return whether a commit, by its file's text, only took rows away that were forgotten on request."""
    return has_metadata(commit, FORGOTTEN_ROWS)
