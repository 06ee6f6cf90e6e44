"""The cost of Spark's writer for a game: `run.sink: spark` beside our files, on classic Spark and over Connect."""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.support.events import made_events
from benchmarks.support.page import RESULTS, write_section
from benchmarks.support.roots import PARALLELISM, BenchRoot
from benchmarks.support.sizes import Sizes, add_options, sizes_of
from demux.core.settings.settings import Engine, Sink, SparkSettings
from demux.core.streaming.session import session, stop
from tools.servers.connect import start_connect

TITLE = "Spark's writer"
_COMMAND = "python -m benchmarks.stores.spark_sink"
# seconds a game
_BARS = {20: 0.35, 200: 0.25}


def measured(spark: SparkSession, folder: Path, where: str, sizes: Sizes) -> list[str]:
    """Return a line for each number of games: rounds by Spark's writer and by files, in turn."""
    lines = []
    for games in (sizes.games, sizes.many):
        events = made_events(folder / "registry", games, sizes.rows, sizes.versions)
        roots = {
            sink: BenchRoot(spark, str(folder / f"{sink.value}{games}"), folder / "registry", Engine.FLEET, sink=sink)
            for sink in (Sink.SPARK, Sink.FILES)
        }
        spent: dict[Sink, list[float]] = {sink: [] for sink in roots}
        for number in range(sizes.warm + sizes.repeats):
            for sink, root in roots.items():
                root.send(events)
                spent[sink].append(root.round().silver)
            print(f"{where}, {games} games, round {number}: {spent[Sink.SPARK][-1]:.2f} s", flush=True)
        by_spark, by_files = (statistics.median(each[sizes.warm :]) for each in spent.values())
        lines.append(
            f"| {where} | {games} | {by_spark:.2f} | {by_spark / games:.3f} | {by_spark / by_files:.1f} | "
            f"{_BARS.get(games, '')} |"
        )
    return lines


def main() -> None:
    """Measure both, and write the section."""
    parser = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    parser.add_argument("--page", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    parser.add_argument("--where", choices=("classic", "connect"), nargs="*", default=("classic", "connect"))
    add_options(parser)
    options = parser.parse_args()
    sizes, lines = sizes_of(options), list[str]()
    folder = Path(tempfile.mkdtemp(prefix="demux-bench-"))
    settings = SparkSettings(master=f"local[{PARALLELISM}]")
    try:
        if "connect" in options.where:
            with start_connect(folder / "server", settings) as server:
                spark = session(settings.model_copy(update={"remote": server.url}), folder / "logs")
                lines += measured(spark, folder / "connect", "Spark Connect", sizes)
                stop(spark)
        if "classic" in options.where:
            spark = session(settings, folder / "logs")
            lines += measured(spark, folder / "classic", "classic", sizes)
            stop(spark)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    head = [
        "| Spark | games | decoding, s a round | s a game | / by files | bar, s a game |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    details = f"{sizes.rows:,} rows of each game and round, medians of {sizes.repeats} rounds after {sizes.warm}"
    write_section(TITLE, _COMMAND, details, [*head, *lines], options.page)


if __name__ == "__main__":
    main()
