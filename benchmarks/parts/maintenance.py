"""Maintenance of many small tables in one driver: seconds a table, where there is something to do and where not."""

from __future__ import annotations

import statistics
import threading
import uuid
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from functools import partial

import pyarrow as pa
from deltalake import write_deltalake

from benchmarks.parts.decoding import timed
from benchmarks.support.roots import PARALLELISM, Bench
from benchmarks.support.sizes import Sizes
from demux.core.root.layout import Layout
from demux.core.settings.maintenance import MaintainSettings
from demux.core.storage.files import Storage
from demux.operations.maintenance import spark_table as by_spark
from demux.operations.maintenance.report import Table, Vacuum
from demux.operations.maintenance.run import MaintenanceRequest, TableMaintainer, tables_of

TITLE = "Maintenance of many small tables"

WORK, IDLE = "small files joined, the old ones removed", "nothing to do"
BY_SPARK = "by Spark: `OPTIMIZE`, then `VACUUM`"
_FILES, _ROWS = 8, 250
# Spark is slow at it, and every table costs the same
_SHARE = 20
_SETTINGS = MaintainSettings(keep="0s")


def run(bench: Bench, sizes: Sizes) -> list[str]:
    """Return the section's lines."""
    root = bench.folder / "maintain"
    layout, few = Layout(str(root)), max(1, sizes.many // _SHARE)
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for number in range(1 + sizes.repeats):
        _fill(layout, sizes.many)
        seconds[WORK].append(timed(lambda: _maintain(bench, layout)))
        seconds[IDLE].append(timed(lambda: _maintain(bench, layout)))
        _fill(layout, few)
        tables = tables_of(layout, _SETTINGS, {}, [_game(at) for at in range(few)])
        seconds[BY_SPARK].append(timed(partial(_by_spark, bench, tables)))
        print(f"round {number}: { {name: round(each[-1], 2) for name, each in seconds.items()} } s", flush=True)
    bench.forget("maintain")
    counts = {WORK: sizes.many, IDLE: sizes.many, BY_SPARK: few}
    return lines({name: statistics.median(each[1:]) for name, each in seconds.items()}, counts)


def lines(seconds: dict[str, float], tables: dict[str, int]) -> list[str]:
    """Return the costs as Markdown: medians of seconds for so many tables."""
    return [
        "| what | tables | seconds | seconds a table |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {tables[name]:,} | {each:.1f} | {each / tables[name]:.4f} |" for name, each in seconds.items()),
    ]


def details(sizes: Sizes) -> str:
    """Return what was measured, as part of a sentence."""
    return (
        f"{sizes.many} tables with {_FILES} files of {_ROWS} rows each, {PARALLELISM} tables at a time in one driver, "
        f"medians of {sizes.repeats} after one that is not counted"
    )


def _fill(layout: Layout, games: int) -> None:
    """Give each game's table so many files more."""
    for at in range(games):
        for number in range(_FILES):
            rows = pa.table({"number": range(number, number + _ROWS), "text": [f"row {number}"] * _ROWS})
            write_deltalake(layout.silver(_game(at)), rows, mode="append")


def _game(at: int) -> str:
    return f"game_{at:05}"


def _maintain(bench: Bench, layout: Layout) -> None:
    """Do what `demux maintain` does with all tables of a root."""
    now = datetime.now(timezone.utc)
    request = MaintenanceRequest(_SETTINGS, Vacuum.YES, False, now, uuid.uuid4().hex, PARALLELISM)
    upkeep = TableMaintainer(bench.spark, layout, request, lambda _: {}, _nothing, threading.Event())
    _require_no_error(one.error for one in upkeep.run(tables_of(layout, _SETTINGS, {}, ())))


def _by_spark(bench: Bench, tables: Iterable[Table]) -> None:
    session = by_spark.upkeep_session(bench.spark, _SETTINGS.target_bytes)
    for table in tables:
        _, seen, _ = by_spark.maintain_by_spark(session, Storage(), table, None, dry_run=False)
        by_spark.vacuum(session, Storage(), table, seen, timedelta(0))


def _require_no_error(errors: Iterable[Exception | None]) -> None:
    found = [str(error) for error in errors if error is not None]
    assert not found, found[:3]


def _nothing() -> None:
    return
