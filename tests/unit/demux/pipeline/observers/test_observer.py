"""Who learns of a command's progress, and that what monitors it fails nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from demux.core.reports import GameReport
from demux.pipeline.observers.observer import CommandRun, Observer, Observers, RoundStage
from demux.pipeline.task_pool import TaskEnd
from tests.support.observed import BEGAN, done, failed, observe_round, seconds


class Log(Observer):
    """Remembers when stages began and ended."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def began(self, run: CommandRun) -> None:
        self.lines.append(f"{run.command} {run.run_id}")

    def stage_began(self, stage: RoundStage, at: datetime) -> None:
        self.lines.append(f"{stage.value} from {(at - BEGAN).seconds}")

    def ended(self, end: TaskEnd[GameReport]) -> None:
        self.lines.append(end.task.game)

    def stage_ended(self, stage: RoundStage, at: datetime, error: BaseException | None) -> None:
        self.lines.append(f"{stage.value} to {(at - BEGAN).seconds} {error or ''}".strip())

    def closed(self, at: datetime, error: BaseException | None) -> None:
        self.lines.append(f"closed {error or ''}".strip())


class Broken(Log):
    """Fails when the first game ends."""

    def ended(self, end: TaskEnd[GameReport]) -> None:
        raise ConnectionError("the collector is gone")


def test_stages_and_games_come_in_order_of_time() -> None:
    log = Log()
    observe_round([log], [done("chess"), failed("go")])
    assert log.lines == [
        "round r1",
        *("ingest from 1", "ingest to 4", "plan from 5", "plan to 6"),
        *("decode from 7", "chess", "go", "decode to 8"),
        *("close from 9", "close to 10", "closed"),
    ]


def test_a_monitor_that_fails_is_left_out_and_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    broken, log = Broken(), Log()
    observe_round([broken, log], [done("chess"), failed("go")])
    assert broken.lines[-1] == "decode from 7"
    assert log.lines[-1] == "closed"
    assert [record.getMessage() for record in caplog.records] == ["Broken failed; nothing more is sent of this run"]


def test_a_failure_of_what_a_person_watches_is_the_commands() -> None:
    log = Log()
    with pytest.raises(ConnectionError):
        observe_round([log], [done("chess")], first=Broken())
    assert log.lines[-2:] == ["decode to 8 the collector is gone", "closed the collector is gone"]


def test_a_stage_that_fails_ends_with_its_error_and_so_does_the_command() -> None:
    log, clock = Log(), seconds()
    observers = Observers(Observer(), [log], lambda: next(clock))
    with pytest.raises(KeyboardInterrupt), observers.run("ingest", "r2"), observers.stage(RoundStage.INGEST):
        raise KeyboardInterrupt("stopped")
    assert log.lines == ["ingest r2", "ingest from 1", "ingest to 2 stopped", "closed stopped"]
    assert next(clock) - BEGAN == timedelta(seconds=4)
