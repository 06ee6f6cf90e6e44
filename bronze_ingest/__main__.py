"""`python -m bronze_ingest`: the same as `demux ingest`."""

from __future__ import annotations

import sys

from demux.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["ingest"]
    main()
