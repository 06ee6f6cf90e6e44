"""`python -m producer`: the same as `demux produce`."""

from __future__ import annotations

import sys

from demux.cli import app

if __name__ == "__main__":
    app(["produce", *sys.argv[1:]])
