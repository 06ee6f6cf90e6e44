"""A root in an S3 server against one on the disk, in one run: `python -m benchmarks.stores.run`.

The store answers at once, or each request waits in a proxy (`tools/servers/stores/slow.py`), as it does in a cloud.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.kafka.bronze import stored
from benchmarks.stores.bars import Bar
from benchmarks.stores.bars import lines as bar_lines
from benchmarks.stores.looks import looks
from benchmarks.stores.rounds import LATENCY_S, Found, at_once, large, late, request_lines, round_lines
from benchmarks.support.page import RESULTS, write_section
from benchmarks.support.plots import draw_all
from benchmarks.support.points import DISK, PLOTS, STORE, loaded, save
from benchmarks.support.roots import PARALLELISM, Bench
from benchmarks.support.sizes import Sizes, add_options, sizes_of
from demux.core.settings.settings import SparkSettings
from demux.core.settings.store import StoreSettings, access_of
from demux.core.streaming.session import session, stop
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, start_object_store
from tools.servers.stores.slow import slow_store

TITLE = "A root in a store, and one on the disk"
_KEYS = {"key": ACCESS_KEY, "secret": SECRET_KEY}
# what a pair of rounds costs, in turns
_REPEATS = 5
PARTS = ("at-once", "looks", "late", "large", "kafka")


def run(folder: Path, parts: Sequence[str], sizes: Sizes, plots: Path) -> Iterator[list[str]]:
    """Yield the section's lines after each figure; the store that answers late has a JVM of its own."""
    found = Found()
    for name, secret in _KEYS.items():
        (folder / name).write_text(secret, encoding="utf-8")
    with start_object_store(folder / "server") as server, slow_store(server.url) as slow:
        direct, through = (_settings(folder, url) for url in (server.url, slow.url))
        if "at-once" in parts:
            with _bench(folder / "direct", direct, plots) as bench:
                for _ in at_once(bench, sizes, direct, server, found):
                    yield _lines(found, plots)
            yield _lines(found, plots)
        if "looks" in parts:
            found.bars += looks(folder, sizes, through, slow, LATENCY_S)
            yield _lines(found, plots)
        if {"late", "large"} & set(parts):
            with _bench(folder / "late", through, plots) as bench:
                if "late" in parts:
                    for _ in late(bench, sizes, through, slow, found):
                        yield _lines(found, plots)
                bench.forget_events()
                if "large" in parts:
                    large(bench, sizes, through, slow, found)
                    yield _lines(found, plots)
        if "kafka" in parts:
            with _bench(folder / "kafka", direct, plots) as bench:
                found.bars.append(_from_kafka(bench, direct))
            yield _lines(found, plots)


def _lines(found: Found, plots: Path) -> list[str]:
    """Return the section's lines so far, and draw the points so far."""
    if found.points:
        save(found.points, plots)
        draw_all(loaded(plots), plots)
    return [*bar_lines(found.bars), "", *round_lines(found), "", *request_lines(found)]


def details(sizes: Sizes) -> str:
    """Return what was measured, for the page."""
    return (
        f"{sizes.rows:,} new rows a game and round, all games active, {sizes.versions} schema versions; versitygw on "
        f"loopback; medians of {sizes.repeats} rounds after {sizes.warm}, in turns"
    )


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and replace the section of the page; a run that is cut short leaves the parts that it has ended."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores.run", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)} (all)")
    parser.add_argument("--page", type=Path, default=RESULTS, help="where the results go (%(default)s)")
    parser.add_argument("--plots", type=Path, default=PLOTS, help="where the plots go (%(default)s)")
    add_options(parser)
    parser.set_defaults(repeats=_REPEATS)
    options = parser.parse_args(words)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    sizes, folder = sizes_of(options), Path(tempfile.mkdtemp(prefix="demux-bench-"))
    try:
        for lines in run(folder, options.parts or PARTS, sizes, options.plots):
            write_section(TITLE, "python -m benchmarks.stores.run", details(sizes), lines, options.page)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _bench(folder: Path, store: StoreSettings, plots: Path) -> Iterator[Bench]:
    settings = SparkSettings(master=f"local[{PARALLELISM}]")
    spark = session(settings, folder / "logs", access_of(store, {}, ""))
    try:
        yield Bench(spark, folder, plots)
    finally:
        stop(spark)


def _from_kafka(bench: Bench, store: StoreSettings) -> Bar:
    speeds = stored(bench.spark, bench.folder / "kafka", store)
    figures = f"{speeds[STORE]:,.0f} / {speeds[DISK]:,.0f} records a second"
    return Bar("bronze from Kafka, store / disk", figures, speeds[STORE] / speeds[DISK], least=0.8)


def _settings(folder: Path, url: str) -> StoreSettings:
    key, secret = (f"secret:file{folder / name}" for name in _KEYS)
    return StoreSettings(endpoint=url, access_key=key, secret_key=secret)


if __name__ == "__main__":
    main()
