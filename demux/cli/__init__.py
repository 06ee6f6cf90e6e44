"""The `demux` command: one sub-command for each stage in flow order, then those that look and those that repair."""

from demux.cli.app import app, main

__all__ = ["app", "main"]
