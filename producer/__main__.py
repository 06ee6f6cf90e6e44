"""`python -m producer`: the same as `demux produce`."""

from __future__ import annotations

import sys

from demux.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["produce"]
    main()
