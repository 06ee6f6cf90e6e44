"""What each test costs, as a sorted table: `make test-profile`.

CPU is that of the process and of all that it started, so it says the same on a busy machine. What a fixture of a module
or session costs is counted for the first test that needs it.
"""

from __future__ import annotations

import multiprocessing.process
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.support.order import file_of, write_costs

# a test that costs more CPU carries the mark `slow`, so that each one is meant
SLOW_S = 30.0

# the beginning of a program's command line, and what is counted when it is started
_PROGRAMS = {"spark-submit": "sessions", "kafka.Kafka": "brokers", "quarkus-run.jar": "registries"}
COLUMNS = (
    "cpu_s",
    "wall_s",
    "wait_s",
    "sessions",
    "jvms",
    "brokers",
    "registries",
    "pythons",
    "queries",
    "batches",
    "jobs",
    "commits",
)
_TICKS = os.sysconf("SC_CLK_TCK")

Cost = Counter[str]


class Profile:
    """Counts while tests run; the process that collects the reports writes the tables."""

    def __init__(self, config: pytest.Config, table: Path) -> None:
        """Begin to count."""
        self._config = config
        self._table = table
        self._counts = Cost()
        self._before: tuple[Cost, float] = (Cost(), 0.0)
        self._found: dict[str, Cost] = {}
        self._slow: list[str] = []
        sys.addaudithook(self._audit)
        for owner, method, what in (
            (DataStreamWriter, "start", "queries"),
            (multiprocessing.process.BaseProcess, "start", "pythons"),
        ):
            _replace(owner, method, partial(self._counting, what))
        _replace(DataStreamWriter, "foreachBatch", self._counting_batches)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Look at the clocks."""
        self._before = (self._now(), time.time())
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Tell the test's report what was counted since its set-up."""
        yield
        before, since = self._before
        cost = self._now()
        cost.subtract(before)
        # a browser's processes may end without a parent that counts them, and the session ends with the last test
        cost["cpu_s"] = max(0.0, cost["cpu_s"])  # type: ignore[assignment]
        cost["jobs"] = max(0, cost["jobs"])
        cost["commits"] = self._commits(since)
        item.user_properties.append(("cost", dict(cost)))
        item.user_properties.append(("slow", item.get_closest_marker("slow") is not None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect."""
        properties: dict[str, Any] = dict(report.user_properties)
        if report.when == "teardown" and "cost" in properties:
            self._found[report.nodeid] = Cost(properties["cost"])
            if properties["cost"]["cpu_s"] > SLOW_S and not properties["slow"]:
                self._slow.append(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the tables, and name the tests that are slow and do not say so."""
        if not self._found:
            return
        self._table.parent.mkdir(parents=True, exist_ok=True)
        files = _by_file(self._found)
        self._table.write_text(_text(self._found, files), encoding="utf-8")
        write_costs({file: cost["cpu_s"] for file, cost in files.items()})
        terminalreporter.write_line(f"costs: {self._table}")
        for nodeid in sorted(self._slow):
            terminalreporter.write_line(f"over {SLOW_S:.0f} s of CPU, and without the mark slow: {nodeid}")

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            words = " ".join(map(str, args[1])) if isinstance(args[1], list | tuple) else str(args[1])
            what = next((name for part, name in _PROGRAMS.items() if part in words), None)
            if what is not None:
                self._add(what)
            elif "python" in words.split(" ")[0] or "/demux" in words.split(" ")[0]:
                self._add("pythons")
            if what is not None or " -cp " in words or words.split(" ")[0].endswith("/java"):
                self._add("jvms")
        elif event == "time.sleep":
            self._counts["wait_s"] += args[0]

    def _counting(self, what: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **options: Any) -> Any:
            self._add(what)
            return original(*args, **options)

        return counting

    def _counting_batches(self, original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda writer, work: original(writer, self._counting("batches", work))

    def _add(self, what: str) -> None:
        self._counts[what] += 1

    def _now(self) -> Cost:
        now = Cost(self._counts)
        now.update({"wall_s": time.monotonic(), "cpu_s": _cpu_s(os.getpid()), "jobs": _jobs()})
        return now

    def _commits(self, since: float) -> int:
        """Count the commits of Delta tables below the temporary folder; one that was copied is as old as it was."""
        factory: pytest.TempPathFactory = self._config._tmp_path_factory  # type: ignore[attr-defined]
        logs = factory.getbasetemp().glob("**/_delta_log/*.json")
        return sum(log.stat().st_mtime >= since for log in logs)


def _by_file(found: Mapping[str, Cost]) -> dict[str, Cost]:
    files: dict[str, Cost] = {}
    for nodeid, cost in found.items():
        files.setdefault(file_of(nodeid), Cost()).update(cost)
    return files


def _text(found: Mapping[str, Cost], files: Mapping[str, Cost]) -> str:
    total: dict[str, Cost] = {"total": Cost()}
    for cost in files.values():
        total["total"].update(cost)
    lines = ["\t".join((*COLUMNS, "what"))]
    for part in (total, files, found):
        lines += ["", *(_line(what, part[what]) for what in sorted(part, key=lambda what: -part[what]["cpu_s"]))]
    return "\n".join(lines) + "\n"


def _line(what: str, cost: Cost) -> str:
    numbers = (f"{cost[name]:.1f}" if name.endswith("_s") else str(cost[name]) for name in COLUMNS)
    return "\t".join((*numbers, what))


def _replace(owner: type, method: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(owner, method, make(getattr(owner, method)))


def _jobs() -> int:
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return 0
    found: int = context._jsc.sc().dagScheduler().numTotalJobs()
    return found


def _cpu_s(root: int) -> float:
    """Return the CPU seconds of a process and of all that it started, those that have ended included."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        ticks[process] = sum(map(int, fields[11:15]))
    found, left = 0, [root]
    while left:
        process = left.pop()
        found += ticks.get(process, 0)
        left += children.get(process, ())
    return found / _TICKS
