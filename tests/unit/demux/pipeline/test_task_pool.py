"""The engine: many tasks on one driver, each alone in its success and in its failure."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import cast

import pytest
from pyspark.sql import SparkSession

from demux.core.errors import CheckpointLost, ErrorKind, RegistryUnavailable, StorageFailed, TaskFailed
from demux.core.settings.settings import RunSettings
from demux.pipeline.task_pool import TaskEnd, run_tasks
from install_workflow.planning.plan import Task

# nothing here may wait for ever
PATIENCE_S = 30.0


class FakeContext:
    """Remembers the pool that each thread said."""

    def __init__(self) -> None:
        self.pools = threading.local()

    def setLocalProperty(self, key: str, value: str) -> None:
        assert key == "spark.scheduler.pool"
        self.pools.value = value


class FakeSession:
    """All that the engine uses of a Spark session."""

    def __init__(self) -> None:
        self.sparkContext = FakeContext()


class RecordingStop(threading.Event):
    """An event that never happens, and remembers for how long it was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return False


class FailsFirst:
    """Work that fails the first times of each game, then reports the number of tries."""

    def __init__(self, failures: dict[str, list[Exception]]) -> None:
        self.failures = failures
        self.tries: Counter[str] = Counter()

    def __call__(self, task: Task) -> str:
        self.tries[task.game] += 1
        left = self.failures.get(task.game)
        if left:
            raise left.pop(0)
        return f"{task.game} after {self.tries[task.game]}"


def tasks(*games: str) -> list[Task]:
    return [Task(game, f"deserialize_{game}", "cluster_001") for game in games]


def run(
    work: Callable[[Task], str],
    some: list[Task],
    *,
    parallelism: int = 2,
    retries: int = 2,
    retry_wait_s: float = 0.0,
    stop: threading.Event | None = None,
    session: FakeSession | None = None,
) -> tuple[TaskEnd[str], ...]:
    settings = RunSettings(parallelism=parallelism, retries=retries, retry_wait_s=retry_wait_s)
    spark = cast(SparkSession, session or FakeSession())
    ended = run_tasks(spark, some, work, settings, stop or threading.Event())
    return tuple(sorted(ended, key=lambda end: end.task.game))


def unreachable() -> RegistryUnavailable:
    return RegistryUnavailable("The registry does not answer.", "Try again later.")


def test_no_tasks_end_in_no_way() -> None:
    assert run(lambda task: task.game, []) == ()


def test_every_report_comes_back_in_order_of_the_game() -> None:
    ended = run(lambda task: task.game.upper(), tasks("go", "chess", "ludo"))
    assert [(end.task.game, end.report, end.error) for end in ended] == [
        ("chess", "CHESS", None),
        ("go", "GO", None),
        ("ludo", "LUDO", None),
    ]
    assert all(0 <= end.seconds < PATIENCE_S for end in ended)


def test_each_task_works_in_a_pool_of_its_own() -> None:
    session = FakeSession()
    ended = run(lambda task: str(session.sparkContext.pools.value), tasks("chess", "go", "ludo"), session=session)
    assert [end.report for end in ended] == ["deserialize_chess", "deserialize_go", "deserialize_ludo"]


def test_as_many_tasks_as_allowed_work_at_the_same_time_and_no_more() -> None:
    meet = threading.Barrier(2)
    lock = threading.Lock()
    now: list[str] = []
    most: list[int] = []

    def work(task: Task) -> str:
        with lock:
            now.append(task.game)
            most.append(len(now))
        meet.wait(PATIENCE_S)
        with lock:
            now.remove(task.game)
        return task.game

    ended = run(work, tasks("a", "b", "c", "d"), parallelism=2)
    assert [end.error for end in ended] == [None] * 4
    assert max(most) == 2


def test_a_failure_stays_with_its_game() -> None:
    lost = CheckpointLost("The checkpoint is gone.", "Run `demux rebuild --game go`.")
    work = FailsFirst({"go": [lost], "ludo": [ValueError("no such thing")], "xo": [OSError("No space left on device")]})
    chess, go, ludo, xo = run(work, tasks("chess", "go", "ludo", "xo"))
    assert (chess.report, chess.error) == ("chess after 1", None)
    assert (go.report, go.error) == (None, lost)
    assert isinstance(ludo.error, TaskFailed)
    assert ludo.error.message == "ValueError: no such thing."
    assert isinstance(xo.error, StorageFailed)


def test_a_transient_failure_is_tried_again() -> None:
    work = FailsFirst({"go": [unreachable(), ConnectionResetError("Connection reset by peer")]})
    (go,) = run(work, tasks("go"), retries=2)
    assert (go.report, go.error) == ("go after 3", None)


def test_a_transient_failure_that_lasts_is_given_up_after_the_last_try() -> None:
    work = FailsFirst({"go": [unreachable() for _ in range(9)]})
    (go,) = run(work, tasks("go"), retries=2)
    assert go.error is not None
    assert (go.error.condition, go.error.kind) == ("REGISTRY_UNAVAILABLE", ErrorKind.TRANSIENT)
    assert work.tries["go"] == 3


def test_without_retries_there_is_one_try() -> None:
    work = FailsFirst({"go": [unreachable()]})
    (go,) = run(work, tasks("go"), retries=0)
    assert go.report is None
    assert work.tries["go"] == 1


def test_a_terminal_failure_is_not_tried_again() -> None:
    work = FailsFirst({"go": [ValueError("wrong")]})
    run(work, tasks("go"), retries=5)
    assert work.tries["go"] == 1


def test_each_wait_is_twice_as_long_as_the_one_before() -> None:
    stop = RecordingStop()
    run(FailsFirst({"go": [unreachable() for _ in range(9)]}), tasks("go"), retries=4, retry_wait_s=0.5, stop=stop)
    assert stop.waits == [0.5, 1.0, 2.0, 4.0]


def test_a_stop_ends_the_wait_before_the_next_try() -> None:
    stop = threading.Event()
    work = FailsFirst({"go": [unreachable()]})

    def work_and_stop(task: Task) -> str:
        stop.set()
        return work(task)

    (go,) = run(work_and_stop, tasks("go"), retry_wait_s=3600, stop=stop)
    assert go.report == "go after 2"
    assert go.seconds < PATIENCE_S


def test_after_a_stop_the_task_under_way_finishes_and_no_other_begins() -> None:
    stop = threading.Event()

    def work(task: Task) -> str:
        stop.set()
        return task.game

    ended = run(work, tasks("chess", "go", "ludo"), parallelism=1, stop=stop)
    assert [end.report for end in ended] == ["chess"]


def test_a_stop_before_the_beginning_begins_nothing() -> None:
    stop = threading.Event()
    stop.set()
    assert run(lambda task: task.game, tasks("chess", "go"), stop=stop) == ()


def test_each_end_comes_at_once_while_others_are_still_at_work() -> None:
    go_has_ended = threading.Event()

    def work(task: Task) -> str:
        if task.game == "chess":
            assert go_has_ended.wait(PATIENCE_S)
        return task.game

    settings, spark = RunSettings(parallelism=2), cast(SparkSession, FakeSession())
    ended = run_tasks(spark, tasks("chess", "go"), work, settings, threading.Event())
    assert next(ended).task.game == "go"
    go_has_ended.set()
    assert [end.task.game for end in ended] == ["chess"]


def test_the_log_has_the_whole_story_of_a_failure(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the command line turns this off
    monkeypatch.setattr(logging.getLogger("demux"), "propagate", True)
    run(FailsFirst({"go": [ValueError("deep inside")]}), tasks("go"))
    assert "task deserialize_go failed" in caplog.text
    assert "ValueError: deep inside" in caplog.text
