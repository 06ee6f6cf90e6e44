"""Growth over many rounds: memory of the driver, files of the silver tables, and what a reader meets meanwhile."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.parts.scale import grown
from benchmarks.support.roots import Bench
from benchmarks.support.sizes import Sizes

MEMORY_TITLE = "Memory over many rounds"
FILES_TITLE = "Files of a silver table over many rounds"

_MIB = 2**20
_BETWEEN_SCANS_S = 0.05
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in MiB: the JVM's heap that is in use after a collection, and all that the driver's Python holds."""

    heap: float
    python: float


@dataclass(frozen=True, slots=True)
class Reads:
    """The results of a reader that scanned a table again and again.

    Attributes:
        seconds: of each scan.
        failures: sentences, one for each scan that failed, or found fewer rows than the one before.
    """

    seconds: list[float]
    failures: list[str]


def memory(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the driver's memory round by round, all games active in each."""
    root, events = grown(bench, sizes.most, sizes), bench.events(sizes.most, sizes.few_rows)
    found: list[Memory] = []
    for number in range(1, sizes.rounds + 1):
        root.send(events)
        spent = root.round()
        found.append(memory_of(bench.spark))
        print(f"round {number}: {spent.round:.1f} s, {found[-1]}", flush=True)
    shown = _shown(len(found))
    return [
        f"| {sizes.most:,} games, all active, {sizes.few_rows:,} new rows each | JVM heap in use, MiB | "
        "driver's Python (resident), MiB |",
        "| --- | ---: | ---: |",
        *(f"| after round {at} | {found[at - 1].heap:,.0f} | {found[at - 1].python:,.0f} |" for at in shown),
        f"| most in any round | {max(one.heap for one in found):,.0f} | {max(one.python for one in found):,.0f} |",
        "",
        "After a collection each. The driver's Python holds the events that the bench sends, too. Bar: at most "
        "2,048 MiB of heap, flat.",
    ]


def files(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the most files that a silver table has, round by round, and what a reader met at the same time."""
    root, events = bench.root("files"), bench.events(sizes.games, sizes.few_rows)
    root.send(events)
    root.round()
    read = root.silver()[0]
    alone = _read_while(read, lambda: time.sleep(min(5.0, 0.1 * sizes.file_rounds)))
    most: list[int] = []

    def rounds() -> None:
        for _ in range(sizes.file_rounds - 1):
            most.append(max(_files(table) for table in root.silver()))
            root.send(events)
            root.round()
        most.append(max(_files(table) for table in root.silver()))

    beside = _read_while(read, rounds)
    rows = [("no rounds", alone), ("rounds all the time", beside)]
    return [
        f"| {sizes.games} games, {sizes.few_rows:,} new rows each | files of the table that has most |",
        "| --- | ---: |",
        *(f"| after round {at} | {most[at - 1]} |" for at in _shown(len(most))),
        f"| most after any round | {max(most)} |",
        "",
        "| a reader that scans a whole table, again and again | scans | failed | median, s | slowest, s |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {len(one.seconds)} | {len(one.failures)} | {statistics.median(one.seconds):.3f} | "
            f"{max(one.seconds):.3f} |"
            for name, one in rows
        ),
        "",
        *(f"Failed: {sentence}" for sentence in (*alone.failures, *beside.failures)[:3]),
    ]


def memory_details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return f"{sizes.rounds} rounds"


def files_details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return f"{sizes.file_rounds} rounds, with the defaults for compaction"


def memory_of(spark: SparkSession) -> Memory:
    """Return what is in use now."""
    jvm: Any = spark.sparkContext._jvm
    # the first one lets the second free what the cleaner has let go of
    for _ in range(2):
        jvm.java.lang.System.gc()
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    return Memory(heap / _MIB, _resident() / _MIB)


def _resident() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def _shown(count: int) -> list[int]:
    return sorted({1, min(2, count), *range(10, count + 1, 10), count})


def _files(table: str) -> int:
    return len(DeltaTable(table).file_uris())


def _read_while(table: str, work: Any) -> Reads:
    """Return what a reader in a process of its own met while the work was done."""
    spawn = multiprocessing.get_context("spawn")
    begun, over = spawn.Event(), spawn.Event()
    here, there = spawn.Pipe(duplex=False)
    reader = spawn.Process(target=scans, args=(table, begun, over, there))
    reader.start()
    try:
        assert begun.wait(_PATIENCE_S), "the reader does not begin"
        work()
    finally:
        over.set()
    assert here.poll(_PATIENCE_S), "the reader does not end"
    found: Reads = here.recv()
    reader.join()
    return found


def scans(table: str, begun: Event, over: Event, results: Connection[Reads, Reads]) -> None:
    """Scan the table until it is over, and tell what was met; the first scan is not counted."""
    found, rows = Reads([], []), len(DeltaTable(table).to_pyarrow_table())
    begun.set()
    while not over.is_set():
        started = time.perf_counter()
        try:
            now = len(DeltaTable(table).to_pyarrow_table())
            if now < rows:
                found.failures.append(f"{rows} rows, and then {now}")
            rows = now
        except Exception as error:
            found.failures.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
        found.seconds.append(time.perf_counter() - started)
        over.wait(_BETWEEN_SCANS_S)
    results.send(found)
