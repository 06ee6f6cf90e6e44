"""The `demux` command: one sub-command for each stage in flow order, then those that look and those that repair."""

from __future__ import annotations

import sys

from demux.errors import ExitCode


def main() -> None:
    """Run the command line; without Spark installed, say how to install it."""
    try:
        from demux.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in {"pyspark", "py4j", "delta", "deltalake"}:
            raise
        sys.stderr.write(
            f"RUNTIME_MISSING The Python package {error.name} is not installed.\n"
            "Install Spark with `pip install 'protobuf-demux[local]'`; on Databricks the cluster brings it.\n"
        )
        sys.exit(ExitCode.USAGE)
    run()
