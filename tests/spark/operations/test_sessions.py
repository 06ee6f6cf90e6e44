"""Sessions: as a simple model makes them, each row of silver in one place, wherever a run was killed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.columns.types import Column, Primitive, Struct
from demux.core.errors import CheckpointLost, DemuxError, GameUnknown, SettingsInvalid, TableLost, TaskFailed
from demux.core.root.layout import Layout
from demux.core.tables import SILVER_ORIGIN
from demux.operations.sessions import SessionSpec, SessionsReport, events_of, merged, run_sessions
from tests.support.flow import crash
from tests.support.spark.tables import read, write

Event = tuple[str | None, int | None]

GAME = "chess'; DROP"
KEY = "chess_drop__c0ffee"
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
NOW = BEGIN + timedelta(days=1)
SILVER = Struct((Column("user_name", Primitive.STRING), Column("at", Primitive.TIMESTAMP), *SILVER_ORIGIN))
GAP_S, LATENESS_S = 60, 100
SPEC = SessionSpec(GAME, ("user_name",), timedelta(seconds=GAP_S), "at")


@dataclass
class Root:
    """A root with a silver table, and what a model says of its sessions."""

    spark: SparkSession
    layout: Layout

    def add(self, events: Iterable[Event], silver: Struct = SILVER) -> None:
        rows = [
            {"user_name": user, "at": None if at is None else BEGIN + timedelta(seconds=at), "_record_id": f"r{number}"}
            for number, (user, at) in zip(count(), events, strict=False)
        ]
        write(self.layout.silver(key()), silver, rows)

    def run(self, spec: SessionSpec = SPEC, lateness_s: int = LATENESS_S, **options: bool) -> SessionsReport:
        return run_sessions(self.spark, self.layout, spec, timedelta(seconds=lateness_s), lambda: NOW, **options)

    def sessions(self) -> list[tuple[Any, ...]]:
        names = ("user_name", "session_start", "session_end", "events", "_closed_by")
        return [
            (user, _second(start), _second(end), events, closed)
            for user, start, end, events, closed in read(self.layout.sessions(key()), *names)
        ]

    def copied_to(self, folder: Path) -> Root:
        shutil.copytree(self.layout.root, folder)
        return Root(self.spark, Layout(str(folder)))


@dataclass
class Model:
    """What sessions are: one event after the other."""

    open: list[list[Any]] = field(default_factory=list)
    closed: list[tuple[Any, ...]] = field(default_factory=list)
    late: int = 0
    watermark: int | None = None

    def take(self, events: Sequence[Event]) -> None:
        timed = [(user, at) for user, at in events if at is not None]
        timely = [event for event in timed if not self.is_over(event[1])]
        self.late += len(timed) - len(timely)
        for user, at in timely:
            near = [one for one in self.open if one[0] == user and one[1] - GAP_S <= at <= one[2] + GAP_S]
            self.open = [one for one in self.open if one not in near]
            starts, ends = [at, *(one[1] for one in near)], [at, *(one[2] for one in near)]
            self.open.append([user, min(starts), max(ends), 1 + sum(one[3] for one in near)])
        if timed:
            self.watermark = max(self.watermark or 0, max(at for _, at in timed) - LATENESS_S)
        self.close("watermark", lambda one: self.is_over(one[2]))

    def close(self, by: str, which: Callable[[list[Any]], bool]) -> None:
        self.closed += [(*one, by) for one in self.open if which(one)]
        self.open = [one for one in self.open if not which(one)]

    def is_over(self, end: int) -> bool:
        return self.watermark is not None and end + GAP_S <= self.watermark

    def sessions(self) -> list[tuple[Any, ...]]:
        return sorted([*self.closed, *((*one, None) for one in self.open)], key=_order)


def key() -> str:
    from demux.core.names import names_of

    return names_of(GAME).key


def _second(moment: datetime) -> int:
    return int((moment - BEGIN).total_seconds())


def _order(row: Sequence[Any]) -> str:
    return repr(tuple(row))


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Root:
    return Root(spark, Layout(str(tmp_path / "root")))


def some_events(rng: random.Random, first: int, last: int, events: int) -> list[Event]:
    users = [None, *(f"user {number}" for number in range(40))]
    return [(rng.choice(users), rng.choice([None, *[rng.randint(first, last)] * 20])) for _ in range(events)]


def test_sessions_are_those_of_a_simple_model_and_every_row_is_counted_once(root: Root) -> None:
    rng, model, rows = random.Random(8), Model(), 0
    for first, last, flush in ((1000, 1600, False), (700, 2400, True), (1500, 2600, False)):
        events = some_events(rng, first, last, 400)
        root.add(events)
        model.take(events)
        rows += len(events)
        report = root.run(flush=flush)
        if flush:
            model.close("flush", lambda _: True)
        assert sorted(root.sessions(), key=_order) == model.sessions()
        late, untimed = sum(step.rows_late for step in report.all), sum(step.rows_untimed for step in report.all)
        assert (len(report.new), late) == (1, model.late)
        assert sum(row[3] for row in root.sessions()) + late + untimed == rows == report.rows_silver
        assert sum(report.sessions.values()) == len(model.sessions())
    assert model.late > 20
    assert {row[4] for row in root.sessions()} == {"watermark", "flush", None}
    # nothing is new
    before = root.sessions()
    assert root.run().new == ()
    assert root.sessions() == before


def test_without_late_events_they_are_those_of_sparks_own_session_window(root: Root) -> None:
    events = [event for event in some_events(random.Random(9), 0, 3000, 400) if event[1] is not None]
    # a pause of just the gap
    root.add([*events, ("edge", 0), ("edge", GAP_S), ("edge", 2 * GAP_S + 1)])
    silver = root.spark.read.format("delta").load(root.layout.silver(key()))
    ours = merged(events_of(silver, SPEC), SPEC.by, SPEC.gap).select(
        "user_name", F.expr("unix_seconds(session_start)"), F.expr("unix_seconds(session_end)"), "events"
    )
    window = F.session_window("at", f"{GAP_S} seconds")
    own = silver.groupBy("user_name", window.alias("w")).agg(F.count(F.lit(1)).alias("events"))
    theirs = own.select(
        "user_name", F.expr("unix_seconds(w.start)"), F.expr(f"unix_seconds(w.end) - {GAP_S}"), "events"
    )
    found = sorted(map(tuple, ours.collect()), key=repr)
    assert found == sorted(map(tuple, theirs.collect()), key=repr)
    zero = int(BEGIN.timestamp())
    edge = [(start - zero, end - zero, events) for user, start, end, events in found if user == "edge"]
    assert edge == [(0, GAP_S, 2), (2 * GAP_S + 1, 2 * GAP_S + 1, 1)]


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A root with open and closed sessions, and new rows in silver. To be copied, not changed."""
    root = Root(spark, Layout(str(tmp_path_factory.mktemp("begun") / "root")))
    rng = random.Random(10)
    root.add(some_events(rng, 1000, 1600, 300))
    root.run()
    root.add(some_events(rng, 900, 2000, 300))
    return root


@pytest.fixture(scope="module")
def undisturbed(begun: Root, tmp_path_factory: pytest.TempPathFactory) -> tuple[SessionsReport, list[tuple[Any, ...]]]:
    """What a run on it reports and makes."""
    root = begun.copied_to(tmp_path_factory.mktemp("undisturbed") / "root")
    return root.run(flush=True), root.sessions()


@pytest.mark.parametrize("writes", [1, 2, 3], ids=["what the batch does", "its sessions", "the flush"])
def test_a_run_that_dies_at_any_of_its_writes_is_finished_by_the_next_one(
    begun: Root, undisturbed: tuple[SessionsReport, list[tuple[Any, ...]]], tmp_path: Path, writes: int
) -> None:
    root = begun.copied_to(tmp_path / "root")
    with crash.after_writes(writes), pytest.raises((crash.Crash, TaskFailed)):
        root.run(flush=True)
    # what the batch was going to do stands, whatever is asked for now
    report = root.run(lateness_s=0, flush=True)
    assert (report.all, report.sessions, root.sessions()) == (
        undisturbed[0].all,
        undisturbed[0].sessions,
        undisturbed[1],
    )
    assert sum(step.rows_in for step in report.all) == 600


def test_what_was_made_by_something_else_is_refused_until_it_is_rebuilt(begun: Root, tmp_path: Path) -> None:
    root = begun.copied_to(tmp_path / "root")
    other = SessionSpec(GAME, ("user_name",), timedelta(seconds=30), "at")
    with pytest.raises(SettingsInvalid, match="were made by"):
        root.run(other)
    with crash.after_writes(1), pytest.raises(crash.Crash):
        root.run(other, rebuild=True)
    assert root.sessions() == []
    report = root.run(other)
    assert (len(report.all), report.all[0].rows_in, report.all[0].rows_late) == (1, 600, 0)
    assert sum(row[3] for row in root.sessions()) + report.all[0].rows_untimed == 600


def test_a_lost_table_or_checkpoint_is_noticed(begun: Root, tmp_path: Path) -> None:
    root, other = begun.copied_to(tmp_path / "root"), begun.copied_to(tmp_path / "other")
    shutil.rmtree(root.layout.sessions_checkpoint(key()))
    with pytest.raises(CheckpointLost, match="demux sessions --rebuild --game"):
        root.run()
    shutil.rmtree(other.layout.sessions(key()))
    with pytest.raises(TableLost, match="demux sessions --rebuild --game"):
        other.run()


def test_bad_input_is_told_and_nothing_is_written(begun: Root, tmp_path: Path) -> None:
    root = begun.copied_to(tmp_path / "root")
    shutil.rmtree(root.layout.sessions(key()))
    shutil.rmtree(root.layout.sessions_checkpoint(key()))
    gap = SPEC.gap
    wrong: list[tuple[SessionSpec, type[DemuxError], str]] = [
        (SessionSpec("go", ("user_name",), gap), GameUnknown, "'go' has no table"),
        (SessionSpec(GAME, ("user_nam",), gap), SettingsInvalid, "no such column. Did you mean user_name"),
        (SessionSpec(GAME, ("user_name",), gap, "_record_id"), SettingsInvalid, "no times."),
    ]
    for spec, kind, said in wrong:
        with pytest.raises(kind, match=said):
            root.run(spec)
    assert not Path(root.layout.sessions(key())).exists()
