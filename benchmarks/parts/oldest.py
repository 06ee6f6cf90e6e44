"""Seconds of rounds with `engine: stream` and `from_protobuf`; in the oldest lane, whose Spark has it here.

`speed_there` runs this module by that lane's Python, on the same events, made by the same seed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.support.events import Events
from benchmarks.support.roots import PARALLELISM, Bench
from demux.core.settings.settings import Decoder, Engine, SparkSettings
from demux.core.streaming.session import session, stop

_PROJECT = Path(__file__).parents[2]
_PYTHON = _PROJECT / ".venv" / "oldest" / "bin" / "python"


def speed_there(games: int, rows_each: int, versions: int, rounds: int) -> list[float] | None:
    """Return seconds of each round in the oldest lane; None where the lane is not installed."""
    if not _PYTHON.exists():
        return None
    java = subprocess.run(
        ["sh", "tools/setup.sh", "java", "oldest"], cwd=_PROJECT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    sizes = [str(size) for size in (games, rows_each, versions, rounds)]
    words = [str(_PYTHON), "-m", "benchmarks.parts.oldest", *sizes]
    # SPARK_HOME of this lane is not that one's
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    ended = subprocess.run(
        words, cwd=_PROJECT, env={**environment, "JAVA_HOME": java}, check=True, stdout=subprocess.PIPE, text=True
    )
    seconds: list[float] = json.loads(ended.stdout.splitlines()[-1])
    return seconds


def seconds_here(bench: Bench, events: Events, rounds: int) -> list[float]:
    """Return seconds of decoding in each round."""
    root = bench.root("from-protobuf", Engine.STREAM, Decoder.FROM_PROTOBUF)
    seconds = []
    for _ in range(rounds):
        root.send(events)
        seconds.append(root.round().silver)
    return seconds


def main() -> None:
    """Print the seconds as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts.oldest", description=__doc__)
    for name in ("games", "rows_each", "versions", "rounds"):
        parser.add_argument(name, type=int)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="demux-bench-oldest-"))
    try:
        spark = session(SparkSettings(master=f"local[{PARALLELISM}]"), folder / "logs")
        try:
            bench = Bench(spark, folder)
            events = bench.events(options.games, options.rows_each, options.versions)
            print(json.dumps(seconds_here(bench, events, options.rounds)))
        finally:
            stop(spark)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
