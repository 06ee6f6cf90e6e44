"""`python -m install_workflow`: the same as `demux plan`."""

from __future__ import annotations

import sys

from demux.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["plan"]
    main()
