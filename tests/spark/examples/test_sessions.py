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
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.columns.types import Column, Primitive, Struct
from demux.core.tables import SILVER_ORIGIN
from docs.examples.sessions import SessionSpec, SessionStep, SessionTables, events_of, main, merge_sessions
from tests.support.flow import crash
from tests.support.spark.tables import read, write

Event = tuple[str | None, int | None]

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
NOW = BEGIN + timedelta(days=1)
SILVER = Struct((Column("user_name", Primitive.STRING), Column("at", Primitive.TIMESTAMP), *SILVER_ORIGIN))
GAP_S, LATENESS_S = 60, 100
SPEC = SessionSpec(("user_name",), GAP_S, "at")


@dataclass
class Case:
    """A silver table, and the sessions made from it."""

    spark: SparkSession
    folder: Path

    @property
    def silver(self) -> str:
        return str(self.folder / "silver")

    @property
    def output(self) -> Path:
        return self.folder / "made"

    def add(self, events: Iterable[Event]) -> None:
        rows = [
            {"user_name": user, "at": None if at is None else BEGIN + timedelta(seconds=at), "_record_id": f"r{number}"}
            for number, (user, at) in zip(count(), events, strict=False)
        ]
        write(self.silver, SILVER, rows)

    def run(self, spec: SessionSpec = SPEC, lateness_s: int = LATENESS_S, flush: bool = False) -> list[SessionStep]:
        return SessionTables(self.spark, self.silver, str(self.output), spec).update(lateness_s, NOW, flush)

    def sessions(self) -> list[tuple[Any, ...]]:
        names = ("user_name", "session_start", "session_end", "events", "_closed_by")
        return [
            (user, _second(start), _second(end), events, closed)
            for user, start, end, events, closed in read(str(self.output / "sessions"), *names)
        ]

    def steps(self) -> list[tuple[Any, ...]]:
        names = ("batch_id", "rows_in", "rows_late", "rows_untimed", "late_before_us", "watermark_us")
        return sorted(read(str(self.output / "batches"), *names))

    def copied_to(self, folder: Path) -> Case:
        shutil.copytree(self.folder, folder)
        return Case(self.spark, folder)


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


def _second(moment: datetime) -> int:
    return int((moment - BEGIN).total_seconds())


def _order(row: Sequence[Any]) -> str:
    return repr(tuple(row))


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    return Case(spark, tmp_path / "case")


def some_events(rng: random.Random, first: int, last: int, events: int) -> list[Event]:
    users = [None, *(f"user {number}" for number in range(40))]
    return [(rng.choice(users), rng.choice([None, *[rng.randint(first, last)] * 20])) for _ in range(events)]


def test_sessions_are_those_of_a_simple_model_and_every_row_is_counted_once(case: Case) -> None:
    rng, model, rows = random.Random(8), Model(), 0
    for first, last, flush in ((1000, 1600, False), (700, 2400, True), (1500, 2600, False)):
        events = some_events(rng, first, last, 400)
        case.add(events)
        model.take(events)
        rows += len(events)
        assert len(case.run(flush=flush)) == 1
        if flush:
            model.close("flush", lambda _: True)
        assert sorted(case.sessions(), key=_order) == model.sessions()
        late, untimed = (sum(step[column] for step in case.steps()) for column in (2, 3))
        assert late == model.late
        assert sum(row[3] for row in case.sessions()) + late + untimed == rows
    assert model.late > 20
    assert {row[4] for row in case.sessions()} == {"watermark", "flush", None}
    before = case.sessions()
    assert case.run() == []
    assert case.sessions() == before


def test_without_late_events_they_are_those_of_sparks_own_session_window(case: Case) -> None:
    events = [event for event in some_events(random.Random(9), 0, 3000, 400) if event[1] is not None]
    # a pause of just the gap
    case.add([*events, ("edge", 0), ("edge", GAP_S), ("edge", 2 * GAP_S + 1)])
    silver = case.spark.read.format("delta").load(case.silver)
    ours = merge_sessions(events_of(silver, SPEC), SPEC).select(
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
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """Open and closed sessions, and new rows in silver. To be copied, not changed."""
    case = Case(spark, tmp_path_factory.mktemp("begun") / "case")
    rng = random.Random(10)
    case.add(some_events(rng, 1000, 1600, 300))
    case.run()
    case.add(some_events(rng, 900, 2000, 300))
    return case


@pytest.fixture(scope="module")
def undisturbed(begun: Case, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The same after a call that nothing disturbed."""
    case = begun.copied_to(tmp_path_factory.mktemp("undisturbed") / "case")
    case.run(flush=True)
    return case


@pytest.mark.parametrize("writes", [1, 2, 3], ids=["the step", "its sessions", "the flush"])
def test_a_call_that_dies_after_any_of_its_writes_is_finished_by_the_next_one(
    begun: Case, undisturbed: Case, tmp_path: Path, writes: int
) -> None:
    case = begun.copied_to(tmp_path / "case")
    with crash.after_writes(writes), pytest.raises((crash.Crash, StreamingQueryException)):
        case.run(flush=True)
    # the step that was decided is done, whatever lateness the next call has
    case.run(lateness_s=0, flush=True)
    assert (case.steps(), case.sessions()) == (undisturbed.steps(), undisturbed.sessions())
    assert sum(step[1] for step in case.steps()) == 600


def test_other_sessions_in_the_folder_and_lost_parts_of_it_are_refused(begun: Case, tmp_path: Path) -> None:
    case, other = begun.copied_to(tmp_path / "case"), begun.copied_to(tmp_path / "other")
    with pytest.raises(ValueError, match=r'has sessions by .*"gap_s": 60.*this asks for .*"gap_s": 30'):
        case.run(SessionSpec(("user_name",), 30, "at"))
    shutil.rmtree(case.output / "checkpoint")
    with pytest.raises(ValueError, match=r"checkpoint is lost\. Remove the folder"):
        case.run()
    shutil.rmtree(other.output / "sessions")
    with pytest.raises(ValueError, match=r"sessions is lost\. Remove the folder"):
        other.run()
    shutil.rmtree(other.output)
    assert [step.rows_in for step in other.run()] == [600]


def test_the_script_takes_a_game_of_a_root(
    begun: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    root, output = tmp_path / "root", tmp_path / "output"
    shutil.copytree(begun.silver, root / "silver" / "chess")
    words = [
        "--root",
        str(root),
        "--game",
        "chess",
        "--by",
        "user_name",
        "--gap-s",
        "60",
        "--time",
        "at",
        "--to",
        str(output),
    ]
    monkeypatch.setattr("sys.argv", ["sessions.py", *words, "--flush"])
    main()
    assert "600 rows, 0 late, " in capfd.readouterr().out
    assert set(read(str(output / "sessions"), "_closed_by")) == {("watermark",), ("flush",)}
