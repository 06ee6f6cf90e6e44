"""What a commit that removes forgotten rows says of itself. Pure."""

from __future__ import annotations

# Delta's `userMetadata` of the commit
FORGOTTEN_ROWS = "demux: rows that were forgotten on request"
