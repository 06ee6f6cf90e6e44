"""The plan: what should run against what runs now."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.errors import PlanRefused
from demux.names import GameNames
from demux.settings import GamesSettings, Policy
from install_workflow import plan as plan_module
from install_workflow.plan import Action, Change, Plan, Task, Waiting, make_plan

AUTO = GamesSettings()
ALLOW = GamesSettings(policy=Policy.ALLOW_LIST, allow=("chess", "go"))

names = st.sampled_from(["chess", "Chess", "ch-ess", "go", "将棋", "../../etc", "a'b; drop table x", "ludo"]) | st.text(
    st.characters(categories=["L", "Nd"]), min_size=1, max_size=6
)
seen_games = st.sets(names, max_size=12)
running_games = st.dictionaries(names, st.sampled_from(["cluster_001", "cluster_002"]), max_size=12)
games_settings = st.builds(
    GamesSettings,
    policy=st.sampled_from(Policy),
    allow=st.lists(names, max_size=4).map(tuple),
    limit=st.integers(0, 8),
)
sizes = st.integers(1, 5)


def task(game: str, cluster: str = "cluster_001", key: str | None = None) -> Task:
    return Task(game, key or f"deserialize_{game}", cluster)


def applied(plan: Plan) -> dict[str, str]:
    """What runs once the plan is applied."""
    return {task.game: task.cluster for task in plan.tasks}


def test_a_game_that_is_new_in_bronze_is_created() -> None:
    assert make_plan(["chess"], {}, AUTO, 20).changes == (Change(Action.CREATE, task("chess"), "new game in bronze"),)


def test_a_game_that_runs_where_it_should_is_kept() -> None:
    plan = make_plan(["chess"], {"chess": "cluster_001"}, AUTO, 20)
    assert plan.changes == (Change(Action.KEEP, task("chess"), "nothing changed"),)
    assert plan.is_empty


def test_a_game_on_a_cluster_that_has_become_too_full_moves() -> None:
    plan = make_plan([], {"chess": "cluster_001", "go": "cluster_001"}, AUTO, 1)
    assert plan.changes == (
        Change(Action.KEEP, task("chess"), "nothing changed"),
        Change(Action.UPDATE, task("go", "cluster_002"), "moved from cluster_001, which is full"),
    )
    assert not plan.is_empty


def test_a_game_that_is_not_on_the_list_any_more_is_deleted_and_its_rows_wait() -> None:
    plan = make_plan(["go"], {"go": "cluster_001", "ludo": "cluster_001"}, ALLOW, 20)
    assert plan.changes == (
        Change(Action.KEEP, task("go"), "nothing changed"),
        Change(Action.DELETE, task("ludo"), "games.allow does not name it any more"),
    )
    assert plan.waiting == (Waiting("ludo", "games.policy is allow-list and games.allow does not name it"),)
    assert plan.tasks == (task("go"),)


def test_a_game_on_the_list_that_bronze_does_not_have_is_not_created() -> None:
    assert make_plan(["chess"], {}, ALLOW, 20).tasks == (task("chess"),)


def test_games_over_the_limit_wait_and_those_on_the_list_do_not_count() -> None:
    plan = make_plan(["a", "b", "chess", "go"], {}, GamesSettings(allow=("chess", "go"), limit=1), 20)
    assert [task.game for task in plan.tasks] == ["a", "chess", "go"]
    assert plan.waiting == (Waiting("b", "games.limit is 1 and as many games are running"),)


def test_a_lower_limit_stops_no_game_that_runs() -> None:
    plan = make_plan(["a", "b", "c"], {"a": "cluster_001", "b": "cluster_001"}, GamesSettings(limit=1), 20)
    assert [change.action for change in plan.changes] == [Action.KEEP, Action.KEEP]
    assert [waiting.game for waiting in plan.waiting] == ["c"]


def test_two_games_that_would_share_a_table_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # no two such names are known: the hash would have to collide
    monkeypatch.setattr(plan_module, "names_of", lambda game: GameNames(game, "same"))
    with pytest.raises(PlanRefused) as refused:
        make_plan(["chess", "go"], {}, AUTO, 20)
    assert refused.value.cause == "The games 'chess' and 'go' would share the table same."
    assert refused.value.fields == {"games": ("chess", "go")}


def test_the_plan_id_names_the_content_and_never_changes_between_releases() -> None:
    assert make_plan(["chess"], {}, AUTO, 20).plan_id == "4d4c9324581e"
    assert make_plan([], {}, AUTO, 20).plan_id == "a683096011db"


@given(seen_games, running_games, games_settings, sizes)
def test_the_plan_of_an_applied_plan_keeps_everything(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int
) -> None:
    first = make_plan(seen, running, games, per_cluster)
    again = make_plan(seen | running.keys(), applied(first), games, per_cluster)
    assert [change.action for change in again.changes] == [Action.KEEP] * len(first.tasks)
    assert (again.tasks, again.waiting) == (first.tasks, first.waiting)


@given(seen_games, running_games, games_settings, sizes)
def test_every_game_runs_or_waits_and_never_both(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int
) -> None:
    plan = make_plan(seen, running, games, per_cluster)
    runs, waits = [task.game for task in plan.tasks], [waiting.game for waiting in plan.waiting]
    assert sorted(runs + waits) == sorted(seen | running.keys())
    deleted = {change.task.game for change in plan.changes if change.action is Action.DELETE}
    assert deleted == running.keys() - set(runs)


@given(seen_games, running_games, games_settings, sizes)
def test_keys_are_unique_and_no_cluster_is_too_full(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int
) -> None:
    tasks = make_plan(seen, running, games, per_cluster).tasks
    assert len({task.key.lower() for task in tasks}) == len(tasks)
    assert max(Counter(task.cluster for task in tasks).values(), default=0) <= per_cluster


@given(seen_games, running_games, games_settings, sizes, st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_of_what_it_is_made_from(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int, random: Random
) -> None:
    shuffled, moved = sorted(seen), sorted(running.items())
    random.shuffle(shuffled)
    random.shuffle(moved)
    one, other = make_plan(seen, running, games, per_cluster), make_plan(shuffled, dict(moved), games, per_cluster)
    assert (one, one.plan_id) == (other, other.plan_id)


@given(seen_games, running_games, games_settings, sizes)
def test_plans_that_differ_in_what_they_do_have_different_ids(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int
) -> None:
    plan = make_plan(seen, running, games, per_cluster)
    again = make_plan(seen | running.keys(), applied(plan), games, per_cluster)
    assert (plan.plan_id == again.plan_id) == plan.is_empty
