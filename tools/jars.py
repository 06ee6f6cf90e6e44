"""`python -m tools.jars`: fetches the jars that this environment's Spark needs, so that nobody does while tests run.

`python -m tools.jars classes` runs `demux prepare` where nobody has: the tests start a Spark a hundred times.

Spark fetches them when it starts. Two that start at once, on a machine without them, spoil each other's downloads.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from demux.cli.run.demo import prepare
from demux.core.errors import RuntimeMissing
from demux.core.settings.settings import SparkSettings
from demux.core.storage.access import StoreAccess
from demux.core.streaming.jvm_cache import JvmCache
from demux.core.streaming.session import session, stop

_TRIES = 3


def fetch() -> None:
    """Start a Spark once, and stop it; a download that fails is tried again."""
    for last in (*[False] * (_TRIES - 1), True):
        with tempfile.TemporaryDirectory(prefix="demux-jars-") as logs:
            try:
                # the jars of S3 too
                stop(session(SparkSettings(master="local[1]"), Path(logs), StoreAccess()))
            except RuntimeMissing as error:
                text = (Path(logs) / "spark.log").read_text(encoding="utf-8", errors="replace")
                sys.stderr.write(f"{text[-3000:]}\n{error}\n")
                if last:
                    raise
            else:
                return


if __name__ == "__main__":
    if sys.argv[1:] != ["classes"]:
        fetch()
    elif not JvmCache.of(os.environ).classes.is_file():
        prepare()
