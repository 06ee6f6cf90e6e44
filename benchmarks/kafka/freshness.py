"""From the broker's timestamp to a committed row of silver, with `demux run --every 1s` as a process of its own.

`python -m benchmarks.kafka.freshness`; each figure is taken twice: from the table of rounds, and from silver's own rows
and the times of the commits that have them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

from benchmarks.support.counted import tree_cpu_s
from benchmarks.support.events import Events, made_events
from benchmarks.support.page import RESULTS, write_section
from benchmarks.support.plots import draw_all
from benchmarks.support.points import PLOTS, STREAMS, Point, loaded, save
from demux.core.control.freshness import NO_FRESHNESS, Freshness, bucket_of, merge
from demux.core.delta.log import commit_in, commit_name
from demux.core.root.layout import Layout
from tools.servers.broker import start_broker

TITLE = "Freshness, from the broker to silver"

_DEMUX = str(Path(sys.executable).with_name("demux"))
_PARTITIONS = 4
_PATIENCE_S = 300.0
_WARM_S = 20.0
_STEP_S = 0.02
_PERCENTS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Variant:
    """What is measured, and what it must reach on 2 cores.

    Attributes:
        games: that the root knows.
        active: of these, that get records.
        engine: as in `run.engine`.
        p50_s: the bar of the median; None without one.
        p95_s: the bar that 95 % of the rows must keep.
    """

    name: str
    games: int
    active: int
    engine: str = "fleet"
    p50_s: float | None = None
    p95_s: float | None = None


VARIANTS = {
    "20": Variant("20 games", 20, 20, p50_s=1.5, p95_s=3.0),
    "200": Variant("200 games", 200, 200, p95_s=5.0),
    "1000": Variant("1,000 games, 10 active", 1_000, 10, p95_s=4.0),
    "streams": Variant(STREAMS, 20, 20, engine="stream"),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found.

    Attributes:
        recorded: freshness by the table of rounds.
        rows: the same by silver's rows and commits.
        sent_per_s: records that the producer sent in a second.
        idle_share: of a core, of all processes of the command, while no records come.
        idle_round_s: seconds of a round without new rows; None where there was none.
    """

    variant: Variant
    recorded: Freshness
    rows: Freshness
    sent_per_s: float
    idle_share: float
    idle_round_s: float | None


def measured(bootstrap: str, folder: Path, variant: Variant, rate: int, seconds: float, idle_s: float) -> Measured:
    """Return what was found with records that come for so many seconds, and then none for `idle_s`."""
    topic = f"freshness-{folder.name}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, _PARTITIONS, 1)])[topic].result()
    events = made_events(folder / "registry", variant.games, 100, 1)
    _write_settings(folder, bootstrap, topic, variant)
    layout = Layout(str(folder / "root"))
    sender = _Sender(bootstrap, topic)
    for value, key in _one_of_each(events):
        sender.send(value, key)
    with _command(folder, variant) as process:
        _wait(lambda: len(list(Path(layout.root, "silver").glob("*/_delta_log"))) == variant.games, process)
        feed = sender.steadily(events.of_first(variant.active), rate)
        began_s = time.time() + _WARM_S
        with feed:
            _sleep_until(began_s + seconds, process)
            ended_s = time.time()
            sent = sender.sent
            # those that are measured must have come through at the same load
            _sleep_until(ended_s + 2.0, process)
        _wait(lambda: _is_through(layout, sent) or variant.engine == "stream", process)
        _sleep_until(time.time() + 5.0, process)
        before, at, rounds = tree_cpu_s(process.pid), time.monotonic(), _lines(folder)
        _sleep_until(time.time() + idle_s, process)
        idle_share = (tree_cpu_s(process.pid) - before) / (time.monotonic() - at)
        idle = [line["seconds"] for line in _lines(folder)[len(rounds) :] if not line["games"]]
    keys = [path.name for path in Path(layout.root, "silver").iterdir()]
    return Measured(
        variant,
        _recorded(layout, began_s, ended_s),
        merge(ages_of(layout.silver(key), began_s, ended_s) for key in keys),
        sent / (ended_s - began_s + _WARM_S),
        idle_share,
        statistics.median(idle) if idle else None,
    )


def ages_of(table: str, began_s: float, ended_s: float) -> Freshness:
    """Return the ages of a table's rows whose records are of this time, when their commits were made."""
    counts: Counter[int] = Counter()
    for version in range(DeltaTable(table).version() + 1):
        log = Path(table, "_delta_log", commit_name(version))
        committed_s = log.stat().st_mtime
        for file in commit_in(version, log.read_text(encoding="utf-8"), "").added:
            column = pq.read_table(Path(table, file.path), columns=["_timestamp"]).column(0)
            for at in column.to_pylist():
                if began_s <= at.timestamp() < ended_s:
                    counts[bucket_of(committed_s - at.timestamp())] += 1
    return Freshness.of(counts)


def _recorded(layout: Layout, began_s: float, ended_s: float) -> Freshness:
    rows = DeltaTable(layout.rounds).to_pyarrow_table(columns=["finished_at", "freshness"]).to_pylist()
    return merge(
        Freshness.from_column(row["freshness"])
        for row in rows
        if row["finished_at"] is not None and began_s <= row["finished_at"].timestamp() < ended_s
    )


class _Sender:
    """Sends records of many games; counts them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "acks": "1"})
        self._topic = topic
        self.sent = 0

    def send(self, value: bytes, key: bytes) -> None:
        self._producer.produce(self._topic, value, key)
        self.sent += 1

    @contextmanager
    def steadily(self, events: Events, rate: int) -> Iterator[None]:
        """Send so many records a second, in turn, while the block runs."""
        ended = threading.Event()
        pairs = [
            (value, key)
            for batch in events.batches
            for value, key in zip(batch.values, batch.keys, strict=True)
            if value is not None
        ]

        def send() -> None:
            began = time.monotonic()
            for sent, (value, key) in enumerate(itertools.cycle(pairs)):
                while sent >= (time.monotonic() - began) * rate:
                    if ended.is_set():
                        return
                    self._producer.poll(0)
                    ended.wait(_STEP_S)
                self.send(value, key)

        thread = threading.Thread(target=send, name="producer")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            assert self._producer.flush(_PATIENCE_S) == 0


def _one_of_each(events: Events) -> Iterator[tuple[bytes, bytes]]:
    seen: set[bytes] = set()
    for batch in events.batches:
        for value, key in zip(batch.values, batch.keys, strict=True):
            if value is not None and key not in seen:
                seen.add(key)
                yield value, key


def _write_settings(folder: Path, bootstrap: str, topic: str, variant: Variant) -> None:
    settings = {
        "root": str(folder / "root"),
        "source": {"kind": "kafka"},
        "kafka": {"bootstrap_servers": bootstrap, "topics": [topic]},
        "registry": {"path": str(folder / "registry")},
        "games": {"limit": 1_000_000},
        "run": {"engine": variant.engine},
        "spark": {"master": "local[2]"},
    }
    (folder / "demux.yml").write_text(json.dumps(settings), encoding="utf-8")


@contextmanager
def _command(folder: Path, variant: Variant) -> Iterator[subprocess.Popen[bytes]]:
    words = [_DEMUX, "run", "--every", "1s", "--json", "--settings", str(folder / "demux.yml")]
    with (
        (folder / "rounds.jsonl").open("wb") as out,
        (folder / "errors.txt").open("wb") as errors,
        subprocess.Popen(words, stdout=out, stderr=errors) as process,
    ):
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(_PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 0, f"{variant.name}: see {folder / 'errors.txt'}"


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines() if line.startswith("{")]


def _is_through(layout: Layout, sent: int) -> bool:
    rounds = DeltaTable(layout.rounds).to_pyarrow_table(columns=["rows_in"]).column(0)
    return sum(rows or 0 for rows in rounds.to_pylist()) >= sent


def _wait(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        _sleep_until(time.time() + 0.5, process)


def _sleep_until(at_s: float, process: subprocess.Popen[bytes]) -> None:
    while (left_s := at_s - time.time()) > 0:
        assert process.poll() is None, f"`demux run` ended with {process.returncode}"
        threading.Event().wait(min(0.5, left_s))


def lines(found: Sequence[Measured], page: str) -> list[str]:
    """Return the results as Markdown; a variant that was not measured now has the line that `page` has of it."""
    measured = {one.variant.name: _line(one) for one in found}
    section = page.partition(f"## {TITLE}\n")[2].partition("\n## ")[0].splitlines()
    before = {line.split(" | ")[0].removeprefix("| "): line for line in section if line.startswith("| ")}
    every = {
        **{variant.name: variant for variant in VARIANTS.values()},
        **{one.variant.name: one.variant for one in found},
    }
    shown = [variant for variant in every.values() if variant.name in {*measured, *before}]
    return [
        "| | p50, s (bar) | p95, s (bar) | by the rows: p50, p95 | sent per second | idle process, share of a core | "
        "idle round, ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(measured.get(variant.name) or before[variant.name] for variant in shown),
        "",
        "Bars for the idle: a process under 2 % of a core, a round under 50 ms of a core.",
        "",
        "![Share of rows against seconds from the broker to silver](../docs/plots/freshness.svg)",
        "",
    ]


def _line(one: Measured) -> str:
    variant, recorded, rows = one.variant, one.recorded, one.rows
    idle = "" if one.idle_round_s is None else f"{one.idle_round_s * 1000:.0f}"
    return (
        f"| {variant.name} | {_seconds(recorded.p50_s, variant.p50_s)} | {_seconds(recorded.p95_s, variant.p95_s)} | "
        f"{_seconds(rows.p50_s)}, {_seconds(rows.p95_s)} | {one.sent_per_s:,.0f} | {one.idle_share:.1%} | {idle} |"
    )


def _seconds(found: float | None, bar: float | None = None) -> str:
    shown = "none" if found is None else f"{found:.2f}"
    return shown if bar is None else f"{shown} ({bar:g})"


def points(found: Sequence[Measured]) -> list[Point]:
    """Return for each variant how old its rows were, by the percent of them that were at most so old."""
    return [
        Point("freshness", one.variant.name, one.variant.games, percent, round(age, 3))
        for one in found
        if one.rows != NO_FRESHNESS
        for percent in _PERCENTS
        if (age := one.rows.quantile_s(percent / 100)) is not None
    ]


def main() -> None:
    """Measure, write the section of RESULTS.md and draw the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka.freshness", description=__doc__)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--games", type=int, help="one variant with so many games, in place of those")
    parser.add_argument("--active", type=int, help="of these, that get records; all of them without it")
    parser.add_argument("--rate", type=int, default=20_000, help="records a second (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60.0, help="that count, for each variant (%(default)s)")
    parser.add_argument("--minutes", type=float, help="the same in minutes")
    parser.add_argument("--idle", type=float, default=30.0, help="seconds without records (%(default)s)")
    parser.add_argument("--note", default="", help="a sentence about the machine, for RESULTS.md")
    parser.add_argument("--look", action="store_true", help="print, and write nothing; roots stay")
    options = parser.parse_args()
    chosen = [VARIANTS[name] for name in options.variants]
    if options.games is not None:
        active = options.active or options.games
        chosen = [Variant(f"{options.games:,} games, {active:,} active", options.games, active)]
    seconds = options.seconds if options.minutes is None else 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="demux-freshness-") as made:
        folder = Path(tempfile.mkdtemp(prefix="demux-look-")) if options.look else Path(made)
        found: list[Measured] = []
        with start_broker(folder / "broker") as broker:
            for number, variant in enumerate(chosen):
                here = folder / f"v{number}"
                here.mkdir()
                found.append(measured(broker.bootstrap, here, variant, options.rate, seconds, options.idle))
                print(_line(found[-1]), flush=True)
        if options.look:
            print(folder)
            return
    details = f"{options.rate:,} records a second for {math.ceil(seconds)} s a variant, `--every 1s`{options.note}"
    kept = [point for point in loaded(PLOTS) if point.plot == "freshness"]
    new = points(found)
    save([*(one for one in kept if one.design not in {each.design for each in new}), *new], PLOTS)
    draw_all(loaded(PLOTS))
    write_section(
        TITLE, "python -m benchmarks.kafka.freshness", details, lines(found, RESULTS.read_text(encoding="utf-8"))
    )


if __name__ == "__main__":
    main()
