"""Where the log files of a process that works on a root are."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from demux.core.extras import on_databricks
from demux.core.root.layout import Layout
from demux.core.root.lock import is_elsewhere
from demux.core.settings.settings import Settings


def logs_of(settings: Settings) -> Path:
    """Return the folder of log files: below a root on this machine, else beside us.

    On Databricks it is a temporary one of this process: many tasks share a driver, and may not write where they begin.
    """
    if not is_elsewhere(settings.root):
        return Path(Layout(settings.root).logs)
    if on_databricks():
        return Path(tempfile.gettempdir()) / f"demux-logs-{os.getpid()}"
    return Path("demux-logs")
