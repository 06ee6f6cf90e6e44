"""All rows that wait for a fleet: rounds until nothing is left of what there was at first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import SchemaInvalid
from demux.core.reports import GameReport
from demux.pipeline.drain import drain
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Task

SHARE = 10


def tasks_of(*games: str) -> tuple[Task, ...]:
    return tuple(Task(game, f"deserialize_{game}", "cluster_001") for game in games)


@dataclass
class Bronze:
    """Rows that wait, by game; a round reads a share of each."""

    waiting: dict[str, int]
    rounds: list[list[str]] = field(default_factory=list)
    after: Callable[[int], None] = lambda _: None
    fails: frozenset[tuple[str, int]] = frozenset()

    def __call__(self, tasks: tuple[Task, ...]) -> Iterator[TaskEnd[GameReport]]:
        self.rounds.append([task.game for task in tasks])
        yield from [self._read(task) for task in tasks]
        self.after(len(self.rounds))

    def _read(self, task: Task) -> TaskEnd[GameReport]:
        if (task.game, len(self.rounds)) in self.fails:
            return TaskEnd(task, None, SchemaInvalid("It is wrong.", "Correct it."), 0.5)
        taken = min(SHARE, self.waiting[task.game])
        self.waiting[task.game] -= taken
        rest = self.waiting[task.game]
        return TaskEnd(task, GameReport(task.game, taken, taken - 1, 1, (len(self.rounds),), rest), None, 0.5)


def test_a_game_with_many_rows_has_several_rounds_and_one_report() -> None:
    bronze = Bronze({"chess": 25, "go": 5})
    # who ends first comes first
    go, chess = drain(tasks_of("chess", "go"), bronze, threading.Event())
    assert bronze.rounds == [["chess", "go"], ["chess"], ["chess"]]
    assert chess.report == GameReport("chess", 25, 22, 3, (1, 2, 3), 0)
    assert (chess.seconds, go.report) == (1.5, GameReport("go", 5, 4, 1, (1,), 0))


def test_what_comes_meanwhile_is_for_the_next_call() -> None:
    bronze = Bronze({"chess": 25})

    def more(_: int) -> None:
        bronze.waiting["chess"] += 20

    bronze.after = more
    (end,) = drain(tasks_of("chess"), bronze, threading.Event())
    assert len(bronze.rounds) == 3
    assert end.report is not None
    assert (end.report.rows_in, end.report.rows_waiting) == (30, 35)


def test_a_game_that_fails_later_has_failed_and_leaves_the_others() -> None:
    bronze = Bronze({"chess": 25, "go": 15}, fails=frozenset({("chess", 2)}))
    chess, go = drain(tasks_of("chess", "go"), bronze, threading.Event())
    assert (chess.report, type(chess.error), chess.seconds) == (None, SchemaInvalid, 1.0)
    assert go.report is not None
    assert go.report.rows_in == 15


def test_a_stop_ends_after_the_round_and_says_what_waits() -> None:
    stop = threading.Event()
    bronze = Bronze({"chess": 25}, after=lambda _: stop.set())
    (end,) = drain(tasks_of("chess"), bronze, stop)
    assert (len(bronze.rounds), end.task.game) == (1, "chess")
    assert end.report is not None
    assert end.report.rows_waiting == 15
    assert list(drain(tasks_of("chess"), bronze, stop)) == []


def test_rows_that_nobody_can_read_are_not_waited_for() -> None:
    def stuck(tasks: tuple[Task, ...]) -> Iterator[TaskEnd[GameReport]]:
        yield from (TaskEnd(task, GameReport(task.game, 0, 0, 0, (), 7), None, 0.0) for task in tasks)

    (end,) = drain(tasks_of("chess"), stuck, threading.Event())
    assert end.report == GameReport("chess", 0, 0, 0, (), 7)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 60)))
def test_every_row_is_read_in_as_few_rounds_as_the_largest_game_needs(waiting: dict[str, int]) -> None:
    bronze = Bronze(dict(waiting))
    ended = list(drain(tasks_of(*waiting), bronze, threading.Event()))
    assert {end.task.game: end.report.rows_in for end in ended if end.report is not None} == waiting
    assert len(bronze.rounds) == max((max(1, -(-rows // SHARE)) for rows in waiting.values()), default=0)
    assert sorted(end.task.game for end in ended) == sorted(waiting)
