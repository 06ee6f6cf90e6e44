"""Drivers as processes: each cluster has its own, one that dies is started again, and none is left behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from demux.errors import DemuxError, Kind
from demux.reports import GameReport
from demux.settings import Settings
from install_workflow.driver_process import Start, run_in_drivers
from install_workflow.engine import Ended
from install_workflow.plan import Task

# each starts processes
pytestmark = pytest.mark.thorough

PROJECT = Path(__file__).parents[3]
FAKE = PROJECT / "tests" / "fakes" / "driver.py"
PATIENCE_S = 60.0

Ends = Mapping[str, Ended[GameReport]]


def run(
    folder: Path,
    clusters: Mapping[str, list[str]],
    stop: threading.Event | None = None,
    on_end: Callable[[Ended[GameReport]], None] = lambda _: None,
    on_broken: Callable[[DemuxError], None] = lambda _: None,
    words: tuple[str, ...] = (sys.executable, str(FAKE)),
    **how: object,
) -> Ends:
    """How the games of the clusters ended, by name."""
    settings = Settings.model_validate({"root": str(folder), "run": {"retries": 1, "retry_wait_s": 0.0, **how}})
    tasks = [Task(game, f"key_{game}", cluster) for cluster, games in clusters.items() for game in games]
    start = Start(words, {**os.environ, "PYTHONPATH": str(PROJECT)}, folder / "logs")
    ended = run_in_drivers(tasks, settings, start, stop or threading.Event(), on_end, on_broken)
    assert [end.task.game for end in ended] == sorted(end.task.game for end in ended)
    return {end.task.game: end for end in ended}


def process_of(end: Ended[GameReport]) -> int:
    assert end.report is not None
    return end.report.rows_in


def lives(process: int) -> bool:
    """Whether a process is there, and not only still to be buried."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_each_cluster_has_a_process_of_its_own(tmp_path: Path) -> None:
    told: list[str] = []
    ended = run(tmp_path, {"a": ["ok1", "ok2"], "b": ["ok3"]}, on_end=lambda end: told.append(end.task.game))
    assert process_of(ended["ok1"]) == process_of(ended["ok2"]) != process_of(ended["ok3"])
    assert {game: end.task.cluster for game, end in ended.items()} == {"ok1": "a", "ok2": "a", "ok3": "b"}
    assert ended["ok1"].report == GameReport("ok1", process_of(ended["ok1"]), 1, 2, (3, 4))
    assert sorted(told) == ["ok1", "ok2", "ok3"]
    assert (tmp_path / "logs" / "a" / "driver.log").read_text() == "started\n"


def test_hundreds_of_games_with_hostile_names_fit(tmp_path: Path) -> None:
    games = [f"ok \"'$(x)\\\n--{number:04}{'x' * 66}" for number in range(600)]
    assert set(run(tmp_path, {"a": games})) == set(games)


def test_a_game_that_fails_is_told_as_it_failed(tmp_path: Path) -> None:
    ended = run(tmp_path, {"a": ["fail", "ok"]})
    error = ended["fail"].error
    assert error is not None
    assert (error.condition, error.kind, error.cause) == ("REGISTRY_UNAVAILABLE", Kind.TRANSIENT, "It does not answer.")
    assert (ended["fail"].seconds, ended["ok"].error) == (0.5, None)


def test_a_driver_that_is_killed_once_is_started_again_for_what_it_did_not_report(tmp_path: Path) -> None:
    ended = run(tmp_path, {"a": ["a-ok", "kill-once", "ok"]})
    assert {game: end.error for game, end in ended.items()} == {"a-ok": None, "kill-once": None, "ok": None}
    assert process_of(ended["a-ok"]) != process_of(ended["ok"]) == process_of(ended["kill-once"])


def test_a_game_that_kills_every_driver_fails_alone(tmp_path: Path) -> None:
    ended = run(tmp_path, {"a": ["kill", "ok1", "ok2"], "b": ["ok3"]})
    assert [ended[game].error for game in ("ok1", "ok2", "ok3")] == [None, None, None]
    error = ended["kill"].error
    assert error is not None
    assert (error.condition, error.kind) == ("DRIVER_DIED", Kind.TRANSIENT)
    assert error.cause == (
        "The driver of a died 2 times before the game's end; the last time it was killed by SIGKILL."
    )
    assert error.remedy.startswith(f"See {tmp_path}/logs/a/driver.log and the files beside it.")


def test_a_driver_that_ends_too_early_is_said_to_have_died_and_how(tmp_path: Path) -> None:
    ended = run(tmp_path, {"a": ["leave"], "b": ["ok3"]}, retries=2)
    assert ended["ok3"].error is None
    said = "died 3 times before the game's end; the last time it ended by itself with exit code 7."
    assert str(ended["leave"].error).count(said) == 1


@pytest.mark.parametrize(
    ("cluster", "condition", "kind", "remedy", "started"),
    [
        ("broken", "RUNTIME_MISSING", Kind.TERMINAL, "Install it.", 1),
        ("locked", "ROOT_LOCKED", Kind.TRANSIENT, "Wait.", 3),
    ],
)
def test_what_a_driver_says_that_cannot_work_is_its_games_failure_and_tried_again_only_where_that_may_help(
    tmp_path: Path, cluster: str, condition: str, kind: Kind, remedy: str, started: int
) -> None:
    broken: list[DemuxError] = []
    ended = run(tmp_path, {cluster: ["ok1", "ok2"], "b": ["ok3"]}, on_broken=broken.append, retries=2)
    assert ended["ok3"].error is None
    for game in ("ok1", "ok2"):
        error = ended[game].error
        assert error is not None
        assert (error.condition, error.kind, error.remedy) == (condition, kind, remedy)
    assert (tmp_path / "logs" / cluster / "driver.log").read_text() == "started\n" * started
    assert [error.condition for error in broken] == ([condition] if kind is Kind.TERMINAL else [])


def test_where_every_game_kills_its_driver_it_comes_to_an_end_and_is_said(tmp_path: Path) -> None:
    games = [f"kill{number}" for number in range(4)]
    ended = run(tmp_path, {"a": games}, retries=3)
    assert set(ended) == set(games)
    # each twice, and then two tries for all of them
    said = "died 10 times before the game's end, and none of its games came to an end; the last time it was killed by"
    assert [said in str(ended[game].error) for game in games] == [True] * 4


def test_a_driver_that_cannot_be_started_is_a_failure_of_its_games(tmp_path: Path) -> None:
    ended = run(tmp_path, {"a": ["ok1"]}, words=(str(tmp_path / "nothing"),), retries=0)
    assert "died once before the game's end; the last time it could not be started: No such file" in str(
        ended["ok1"].error
    )


def test_no_process_of_a_dead_driver_lives_on_when_the_next_one_starts(tmp_path: Path) -> None:
    ended = run(tmp_path, {"a": ["jvm"]})
    assert ended["jvm"].error is None
    assert not lives(int((tmp_path / "logs" / "a" / "orphan").read_text()))


def test_at_most_so_many_drivers_run_at_the_same_time(tmp_path: Path) -> None:
    stop, at_once = threading.Event(), []
    marks = [tmp_path / "logs" / cluster / "hangs" for cluster in "abc"]

    def watch() -> None:
        wait_for(lambda: sum(mark.exists() for mark in marks) == 2)
        at_once.append([mark.exists() for mark in marks])
        stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    ended = run(tmp_path, {cluster: [f"hang-{cluster}"] for cluster in "abc"}, stop, drivers=2)
    watcher.join(PATIENCE_S)
    assert at_once == [[True, True, False]]
    # the two under way have finished, the third was not begun
    assert {game: end.error for game, end in ended.items()} == {"hang-a": None, "hang-b": None}


def test_after_a_stop_what_is_under_way_finishes_and_no_other_begins(tmp_path: Path) -> None:
    stop, mark = threading.Event(), tmp_path / "logs" / "a" / "hangs"

    def watch() -> None:
        wait_for(mark.exists)
        stop.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    ended = run(tmp_path, {"a": ["a-ok", "hang", "ok"]}, stop)
    watcher.join(PATIENCE_S)
    assert set(ended) == {"a-ok", "hang"}


def test_a_second_signal_ends_the_drivers_too(tmp_path: Path) -> None:
    mark = tmp_path / "logs" / "a" / "hangs"

    def interrupt(end: Ended[GameReport]) -> None:
        wait_for(lambda: mark.exists() and mark.read_text() != "")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, {"a": ["hang"], "b": ["ok"]}, on_end=interrupt)
    assert not lives(int(mark.read_text()))


def test_the_drivers_are_not_in_the_terminals_process_group(tmp_path: Path) -> None:
    groups: list[int] = []
    mark = tmp_path / "logs" / "a" / "hangs"
    stop = threading.Event()

    def look() -> None:
        wait_for(lambda: mark.exists() and mark.read_text() != "")
        groups.append(os.getpgid(int(mark.read_text())))
        stop.set()

    # ours may be begun with it ignored
    before = signal.getsignal(signal.SIGINT)
    watcher = threading.Thread(target=look)
    watcher.start()
    run(tmp_path, {"a": ["hang"]}, stop)
    watcher.join(PATIENCE_S)
    assert groups == [int(mark.read_text())]
    assert groups != [os.getpgrp()]
    assert signal.getsignal(signal.SIGINT) is before
