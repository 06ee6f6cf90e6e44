"""What applying a plan writes down, and what a task that ended leaves behind."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import cast

from demux.core.control.games_and_rounds import Control, KnownGame, RoundHistory, TaskOutcome
from demux.core.errors import RegistryUnavailable
from demux.core.reports import GameReport
from demux.core.settings.games import GamesSettings, Policy
from demux.pipeline.round import record_of
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan, Task, make_plan
from install_workflow.planning.rebalance import Balance
from install_workflow.planning.round_plan import apply, balance_now

FIRST, LATER = datetime(2025, 1, 1, tzinfo=timezone.utc), datetime(2025, 2, 1, tzinfo=timezone.utc)
CHESS = Task("chess", "deserialize_chess", "cluster_001")


class FakeControl:
    """The control table of games, in memory."""

    def __init__(self) -> None:
        self.games: dict[str, KnownGame] = {}
        self.writes = 0

    def known_games(self) -> dict[str, KnownGame]:
        return dict(self.games)

    def replace_games(self, games: Iterable[KnownGame]) -> None:
        self.games = {game.name: game for game in games}
        self.writes += 1


def applied(control: FakeControl, plan: Plan, now: datetime) -> dict[str, KnownGame]:
    apply(cast(Control, control), plan, now)
    return control.games


def test_applying_writes_down_who_runs_where_and_who_waits() -> None:
    plan = make_plan(["chess", "go"], {}, GamesSettings(limit=1), 20)
    assert applied(FakeControl(), plan, FIRST) == {
        "chess": KnownGame("chess", "cluster_001", plan.plan_id, FIRST),
        "go": KnownGame("go", None, plan.plan_id, FIRST),
    }


def test_applying_twice_writes_once() -> None:
    control = FakeControl()
    plan = make_plan(["chess", "go"], {}, GamesSettings(limit=1), 20)
    first = applied(control, plan, FIRST)
    assert applied(control, plan, LATER) == first
    assert control.writes == 1


def test_only_what_changed_gets_the_time_of_the_change() -> None:
    control = FakeControl()
    first = make_plan(["chess", "go"], {}, GamesSettings(), 20)
    applied(control, first, FIRST)
    allow = GamesSettings(policy=Policy.ALLOW_LIST, allow=("go",))
    second = make_plan([], {"chess": "cluster_001", "go": "cluster_001"}, allow, 20)
    assert applied(control, second, LATER) == {
        "chess": KnownGame("chess", None, second.plan_id, LATER),
        "go": KnownGame("go", "cluster_001", first.plan_id, FIRST),
    }


def test_games_move_for_balance_only_after_a_task_has_ended_where_the_last_plan_put_it() -> None:
    record = record_of(TaskEnd(CHESS, GameReport("chess", 10, 8, 2, (11, 12)), None, 1.5), "round")
    history = RoundHistory(-1, {}).after([record], 3)
    before, since = (record.finished_at + timedelta(seconds=seconds) for seconds in (-1, 1))
    placed = KnownGame("chess", "cluster_001", "plan", before)
    assert balance_now([placed], history) is Balance.MOVE
    assert balance_now([placed, KnownGame("go", "cluster_002", "plan", since)], history) is Balance.KEEP
    assert balance_now([placed, KnownGame("ludo", None, "plan", since)], history) is Balance.MOVE
    assert balance_now([placed], RoundHistory(-1, {})) is Balance.KEEP
    assert balance_now([], history) is Balance.KEEP


def test_a_task_that_is_done_leaves_its_counts() -> None:
    record = record_of(TaskEnd(CHESS, GameReport("chess", 10, 8, 2, (11, 12)), None, 1.5), "round")
    assert (record.game, record.outcome) == ("chess", TaskOutcome.DONE)
    assert (record.rows_in, record.rows_silver, record.rows_quarantined) == (10, 8, 2)
    assert (record.schema_ids, record.seconds) == ((11, 12), 1.5)
    assert (record.condition, record.sentence) == (None, None)


def test_a_task_that_failed_leaves_its_condition_and_what_to_do() -> None:
    error = RegistryUnavailable("The registry does not answer.", "Try again later.")
    record = record_of(TaskEnd(CHESS, None, error, 1.5), "round")
    assert (record.outcome, record.rows_in) == (TaskOutcome.FAILED, 0)
    assert record.condition == "REGISTRY_UNAVAILABLE"
    assert record.sentence == "The registry does not answer. Try again later."
