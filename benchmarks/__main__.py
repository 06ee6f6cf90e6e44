"""`make bench`: 20 games on this machine, a stream for each and the naive design in turn; Kafka; the fleet; stores."""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.kafka import bronze as kafka_bronze
from benchmarks.kafka import hybrid_lag
from benchmarks.kafka import producer as kafka_producer
from benchmarks.parts import payload_columns
from benchmarks.parts.decoding import rows_per_second, timed
from benchmarks.support.naive import run_all
from benchmarks.support.page import write_section
from benchmarks.support.roots import Times
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.folder import FolderRegistry
from demux.core.root.layout import Layout
from demux.core.settings.settings import Engine, RunSettings, Settings, SparkSettings
from demux.core.streaming.session import session, stop
from demux.pipeline.context import CommandContext, place_of
from demux.pipeline.engines import decode_of
from demux.pipeline.round import run_round
from producer.delta_sink import DeltaSink
from producer.run import MADE_BY, ProduceRequest, produce

_COMMAND = "make bench"


@dataclass
class Bench:
    """One root, one session, and the seconds measured on them."""

    spark: SparkSession
    settings: Settings
    games: int
    place: CommandContext
    seconds: dict[str, list[float]] = field(default_factory=dict)
    ingested: int = 0
    decoded: int = 0

    def produce(self, games: int, rows_each: int) -> None:
        """Send valid events of the first `games` games."""
        request = ProduceRequest(events=games * rows_each, games=games, fault_rate=0.0)
        registry = FolderRegistry(Path(self.settings.registry_path), made_by=MADE_BY)
        produce(request, registry, DeltaSink(self.settings.source_path), now=datetime.now(timezone.utc))

    def ours(self, what: str) -> None:
        """Run one round of this design; bronze and silver are timed apart."""
        times, began = Times(), time.monotonic()
        times.began_s = began
        ran = run_round(self.place, decode_of(self.place, Engine.STREAM), observer=times)
        assert not [end.error for end in ran.ended if end.error]
        self._add(f"bronze, {what}", times.bronze)
        self._add(f"this design, {what}", time.monotonic() - began - times.bronze)
        self.ingested = ran.ingested.rows_in or self.ingested
        self.decoded = sum(end.report.rows_in for end in ran.ended if end.report) or self.decoded

    def naive(self, what: str) -> None:
        """Run one round of the naive design on the same bronze table."""
        layout = Layout(self.settings.root)
        root, schemas = f"{self.settings.root}/naive", self._newest_schemas()
        self._add(
            f"naive design, {what}",
            timed(lambda: run_all(self.spark, layout.bronze, root, schemas, self.settings.run.parallelism)),
        )

    def median(self, name: str) -> float:
        """Return the median of the seconds measured under this name."""
        return statistics.median(self.seconds[name])

    def _newest_schemas(self) -> dict[str, CompiledSchema]:
        registry = FolderRegistry(Path(self.settings.registry_path))
        return {subject: compile_schema(registry.versions(subject)[-1]) for subject in registry.subjects()}

    def _add(self, name: str, seconds: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)
        print(f"{seconds:8.1f} s  {name}", flush=True)


def measure(bench: Bench, rows_each: int, repeats: int) -> None:
    """Fill the bench: a first round that nobody counts, then rounds in turn."""
    bench.produce(bench.games, rows_each)
    bench.ours("first round")
    bench.naive("first round")
    active = max(1, bench.games // 5)
    for _ in range(repeats):
        bench.produce(bench.games, rows_each)
        bench.ours("all games active")
        bench.naive("all games active")
        bench.produce(active, rows_each)
        bench.ours("a fifth active")
        bench.naive("a fifth active")
        bench.ours("none active")
        bench.naive("none active")


def lines(bench: Bench, rows_each: int, decoder: dict[str, float]) -> list[str]:
    """Return the results as Markdown: medians, and ratios against the naive design."""
    table = [
        "| silver, seconds in one round | this design | naive | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    for what in ("all games active", "a fifth active", "none active"):
        ours, naive = bench.median(f"this design, {what}"), bench.median(f"naive design, {what}")
        table.append(f"| {what} | {ours:.1f} | {naive:.1f} | {ours / naive:.2f} |")
    active = bench.median("this design, all games active")
    idle = bench.median("this design, none active")
    rows = bench.games * rows_each
    return [
        *table,
        "",
        "| what | figure |",
        "| --- | ---: |",
        f"| bronze, rows per second | {rows / bench.median('bronze, all games active'):,.0f} |",
        f"| silver, rows per second, all games active | {rows / active:,.0f} |",
        f"| seconds per active game | {active / bench.games:.2f} |",
        f"| seconds per idle game | {idle / bench.games:.3f} |",
        *(f"| {name}, rows per second, one thread | {figure:,.0f} |" for name, figure in decoder.items()),
        f"| arrow decoder / bare ptars | {decoder['arrow decoder'] / decoder['bare ptars']:.2f} |",
    ]


def details(bench: Bench, rows_each: int) -> str:
    """Return what was measured, as part of a sentence."""
    return (
        f"{bench.games} games, {rows_each:,} rows each and round, {bench.settings.run.parallelism} games at a time, "
        f"medians of {len(bench.seconds['this design, none active'])} rounds after one that is not counted"
    )


def decoder_figures(bench: Bench, repeats: int) -> dict[str, float]:
    """Return the decoder's own speed on one game's payloads, taken from bronze."""
    layout = Layout(bench.settings.root)
    registry = FolderRegistry(Path(bench.settings.registry_path))
    subject = registry.subjects()[0]
    newest = registry.versions(subject)[-1]
    rows = bench.spark.read.format("delta").load(layout.bronze)
    mine = rows.where(f"game_name = '{subject}' AND schema_id = {newest.schema_id}").select("payload").collect()
    payloads = [bytes(row.payload) for row in mine]
    repeated = payloads * max(1, 200_000 // max(1, len(payloads)))
    return rows_per_second(compile_schema(newest), repeated, repeats)


def main() -> None:
    """Measure, and write the sections of RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--rows", type=int, default=2_000, help="rows of each active game and round")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="demux-bench-")
    try:
        settings = Settings(root=root, run=RunSettings(parallelism=2), spark=SparkSettings(master="local[2]"))
        spark = session(settings.spark, Path(root) / "logs")
        bench = Bench(spark, settings, options.games, place_of(settings, spark, threading.Event()))
        try:
            measure(bench, options.rows, options.repeats)
            table = lines(bench, options.rows, decoder_figures(bench, options.repeats))
            write_section("A stream for each game", _COMMAND, details(bench, options.rows), table)
            payload_columns.write()
            copies = kafka_bronze.lines(kafka_bronze.measured(spark, Path(root) / "kafka"))
            write_section("Kafka to bronze", _COMMAND, "", copies)
            speeds = kafka_producer.lines(kafka_producer.measured(Path(root) / "producer"))
            write_section("Producer to Kafka", _COMMAND, "", speeds)
            lags = hybrid_lag.lines(hybrid_lag.measured(spark, Path(root) / "hybrid"))
            write_section("Live records beside an archive", _COMMAND, "", lags)
        finally:
            stop(spark)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    # a process of its own: its memory is measured, too
    sizes = (f"--{name}={getattr(options, name)}" for name in ("games", "rows", "repeats"))
    subprocess.run([sys.executable, "-m", "benchmarks.parts.fleet", *sizes], check=True)
    subprocess.run([sys.executable, "-m", "benchmarks.stores.run"], check=True)
    subprocess.run([sys.executable, "-m", "benchmarks.stores.spark_sink"], check=True)
    subprocess.run([sys.executable, "-m", "benchmarks.parts.looks"], check=True)
    subprocess.run([sys.executable, "-m", "benchmarks.kafka.freshness"], check=True)


if __name__ == "__main__":
    main()
