"""The bench of the fleet engine, in parts: `python -m benchmarks.parts.fleet [PART ...]`; without a name, all of them.

Each part replaces its own section of RESULTS.md.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts import backfill as backfilling
from benchmarks.parts import endurance, scale, speed
from benchmarks.parts import maintenance as maintaining
from benchmarks.support import costs, curves
from benchmarks.support.page import RESULTS, write_section
from benchmarks.support.points import PLOTS
from benchmarks.support.roots import PARALLELISM, Bench
from benchmarks.support.sizes import Sizes, add_options, sizes_of
from demux.core.settings.settings import SparkSettings
from demux.core.streaming.session import session, stop


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the bench: the section that it fills, what it measures, and how."""

    title: str
    details: Callable[[Sizes], str]
    run: Callable[[Bench, Sizes], list[str]]


PARTS = {
    "cost": Part(costs.TITLE, costs.details, costs.run),
    "idle": Part(scale.IDLE_TITLE, lambda _: "counted, not timed", scale.idle),
    "few-active": Part(scale.FEW_TITLE, scale.details, scale.few_active),
    "all-active": Part(scale.ALL_TITLE, scale.details, scale.all_active),
    "growth": Part(scale.GROWTH_TITLE, scale.details, scale.growth),
    "points": Part(scale.POINTS_TITLE, scale.details, scale.points),
    "speed": Part(speed.TITLE, speed.details, speed.run),
    "backfill": Part(backfilling.TITLE, backfilling.details, backfilling.run),
    "maintain": Part(maintaining.TITLE, maintaining.details, maintaining.run),
    "memory": Part(endurance.MEMORY_TITLE, endurance.memory_details, endurance.memory),
    "files": Part(endurance.FILES_TITLE, endurance.files_details, endurance.files),
    "plots": Part(curves.TITLE, curves.details, curves.run),
}


def run(names: Sequence[str], sizes: Sizes, page: Path = RESULTS, plots: Path = PLOTS) -> None:
    """Run parts in one session, and write their sections."""
    folder = Path(tempfile.mkdtemp(prefix="demux-bench-"))
    try:
        spark = session(SparkSettings(master=f"local[{PARALLELISM}]"), folder / "logs")
        bench = Bench(spark, folder, plots)
        try:
            for name in names:
                part = PARTS[name]
                print(f"\n{name}: {part.title}", flush=True)
                lines = part.run(bench, sizes)
                write_section(part.title, f"python -m benchmarks.parts.fleet {name}", part.details(sizes), lines, page)
        finally:
            stop(spark)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(words: Sequence[str] | None = None) -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts.fleet", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)} (all)")
    parser.add_argument("--page", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    parser.add_argument("--plots", type=Path, default=PLOTS, help="where the plots go (%(default)s)")
    add_options(parser)
    options = parser.parse_args(words)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    run(options.parts or list(PARTS), sizes_of(options), options.page, options.plots)


if __name__ == "__main__":
    main()
