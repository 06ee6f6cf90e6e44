"""The `demux` command: one sub-command for each stage in flow order, then those that look and those that repair."""

from __future__ import annotations

import sys

from demux.core.extras import missing_extra


def main() -> None:
    """Run the command line; without Spark, say how to install it."""
    try:
        from demux.cli.app import run
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        sys.stderr.write(f"{missing.condition} {missing.message}\n{missing.remedy}\n")
        sys.exit(missing.exit_code)
    run()
