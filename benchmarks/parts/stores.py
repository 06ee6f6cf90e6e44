"""A root in an S3 server against one on the disk, in one run: `python -m benchmarks.parts.stores`."""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.support.page import RESULTS, write_section
from benchmarks.support.roots import PARALLELISM, Bench, BenchRoot, Spent
from benchmarks.support.sizes import Sizes, add_options, sizes_of
from demux.core.settings.settings import SparkSettings
from demux.core.settings.store import StoreSettings, access_of
from demux.core.streaming.session import session, stop
from tools.servers.object_store import ACCESS_KEY, SECRET_KEY, ObjectStore, start_object_store

TITLE = "A root in a store, and one on the disk"
_KEYS = {"DEMUX_BENCH_KEY": ACCESS_KEY, "DEMUX_BENCH_SECRET": SECRET_KEY}


def run(bench: Bench, sizes: Sizes, store: StoreSettings) -> list[str]:
    """Return the table: rounds of the same events on both roots, one after the other."""
    lines = [
        "| games x rows | decoding, disk | a game, ms | store | a game, ms | store / disk | bronze, disk | store |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for games in (sizes.games, 5 * sizes.games):
        roots = {"disk": bench.root(f"disk{games}"), "store": bench.root_in(f"s3://demux/bench{games}", store)}
        spent = _spent(bench, roots, games, sizes)
        for name in roots:
            bench.forget(name)
        bronze = {name: statistics.median(one.bronze for one in each) for name, each in spent.items()}
        silver = {name: statistics.median(one.silver for one in each) for name, each in spent.items()}
        each = {name: f"{seconds:.2f} s | {1000 * seconds / games:.0f}" for name, seconds in silver.items()}
        lines.append(
            f"| {games} x {sizes.rows:,} | {each['disk']} | {each['store']} | {silver['store'] / silver['disk']:.2f} "
            f"| {bronze['disk']:.2f} s | {bronze['store']:.2f} s |"
        )
    return lines


def _spent(bench: Bench, roots: Mapping[str, BenchRoot], games: int, sizes: Sizes) -> Mapping[str, list[Spent]]:
    events = bench.events(games, sizes.rows, sizes.versions)
    spent: defaultdict[str, list[Spent]] = defaultdict(list)
    for number in range(sizes.warm + sizes.repeats):
        for name, root in roots.items():
            root.send(events)
            spent[name].append(root.round())
        last = {name: f"{each[-1].bronze:.2f} + {each[-1].silver:.2f}" for name, each in spent.items()}
        print(f"{games} games, round {number}: bronze + decoding {last} s", flush=True)
    return {name: each[sizes.warm :] for name, each in spent.items()}


def details(sizes: Sizes) -> str:
    """Return what was measured, for the page."""
    return (
        f"{sizes.rows:,} new rows a game and round, all games active, {sizes.versions} schema versions; versitygw on "
        f"loopback, no latency added; the sinks by files. Medians of {sizes.repeats} rounds after {sizes.warm}, in "
        "pairs, in one session."
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and replace the section of the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts.stores", description=__doc__)
    parser.add_argument("--page", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    add_options(parser)
    options = parser.parse_args(words)
    sizes, folder = sizes_of(options), Path(tempfile.mkdtemp(prefix="demux-bench-"))
    try:
        (folder / "server").mkdir()
        with start_object_store(folder / "server") as server:
            _measure(folder, server, sizes, options.page)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(folder: Path, server: ObjectStore, sizes: Sizes, page: Path) -> None:
    for name, secret in _KEYS.items():
        (folder / name).write_text(secret, encoding="utf-8")
    store = StoreSettings(
        endpoint=server.url,
        access_key=f"secret:file{folder}/DEMUX_BENCH_KEY",
        secret_key=f"secret:file{folder}/DEMUX_BENCH_SECRET",
    )
    settings = SparkSettings(master=f"local[{PARALLELISM}]")
    spark = session(settings, folder / "logs", access_of(store, {}))
    try:
        lines = run(Bench(spark, folder), sizes, store)
        write_section(TITLE, "python -m benchmarks.parts.stores", details(sizes), lines, page)
    finally:
        stop(spark)


if __name__ == "__main__":
    main()
