"""The plan: what should run against what runs now."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from demux.core.control.games_and_rounds import Load
from demux.core.errors import PlanRefused
from demux.core.names import GameNames
from demux.core.settings.games import GamesSettings, Policy
from install_workflow.planning import plan as plan_module
from install_workflow.planning.plan import Action, Plan, Task, TaskChange, WaitingGame, make_plan
from install_workflow.planning.rebalance import Balance, most_moves

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
    pinned=st.dictionaries(names, st.sampled_from(["cluster_001", "cluster_009", "big"]), max_size=2),
)
known_loads = st.dictionaries(names, st.builds(Load, st.integers(1, 9000), st.none() | st.floats(0, 500)), max_size=12)
# two games may be pinned to one cluster
sizes = st.integers(2, 5)


def task(game: str, cluster: str = "cluster_001", key: str | None = None) -> Task:
    return Task(game, key or f"deserialize_{game}", cluster)


def applied(plan: Plan) -> dict[str, str]:
    """What runs once the plan is applied."""
    return {task.game: task.cluster for task in plan.tasks}


def test_a_game_that_is_new_in_bronze_is_created() -> None:
    assert make_plan(["chess"], {}, AUTO, 20).changes == (
        TaskChange(Action.CREATE, task("chess"), "new game in bronze"),
    )


def test_a_game_that_runs_where_it_should_is_kept() -> None:
    plan = make_plan(["chess"], {"chess": "cluster_001"}, AUTO, 20)
    assert plan.changes == (TaskChange(Action.KEEP, task("chess"), "nothing changed"),)
    assert plan.is_empty


def test_a_game_on_a_cluster_that_has_become_too_full_moves() -> None:
    plan = make_plan([], {"chess": "cluster_001", "go": "cluster_001"}, AUTO, 1)
    assert plan.changes == (
        TaskChange(Action.KEEP, task("chess"), "nothing changed"),
        TaskChange(Action.UPDATE, task("go", "cluster_002"), "moved from cluster_001, which is full"),
    )
    assert not plan.is_empty


def test_a_pinned_game_moves_to_its_cluster_and_a_new_one_begins_there() -> None:
    games = GamesSettings(pinned={"chess": "big", "go": "big", "gone": "cluster_001"})
    assert make_plan(["go"], {"chess": "cluster_001", "ludo": "cluster_001"}, games, 2).changes == (
        TaskChange(Action.UPDATE, task("chess", "big"), "moved from cluster_001: games.pinned says so"),
        TaskChange(Action.CREATE, task("go", "big"), "new game in bronze"),
        TaskChange(Action.KEEP, task("ludo"), "nothing changed"),
    )


def test_a_pin_that_overfills_a_cluster_is_refused() -> None:
    games = GamesSettings(pinned={"chess": "big", "go": "big"})
    assert len(make_plan(["chess"], {}, games, 1).tasks) == 1
    with pytest.raises(PlanRefused):
        make_plan(["chess", "go"], {}, games, 1)


def test_new_games_with_known_loads_are_spread() -> None:
    loads = {"chess": Load(1, 90.0), "go": Load(1, 80.0), "halma": Load(1, 1.0)}
    tasks = make_plan([*loads, "new"], {}, AUTO, 2, loads).tasks
    assert {task.game: task.cluster for task in tasks} == {
        "chess": "cluster_001",
        "go": "cluster_002",
        "halma": "cluster_001",
        "new": "cluster_002",
    }


def test_an_overloaded_cluster_gives_a_game_away_when_games_may_move() -> None:
    running = {"a": "cluster_001", "b": "cluster_001", "c": "cluster_001", "d": "cluster_002", "e": "cluster_002"}
    loads = {game: Load(1, 30.0) for game in "abc"} | {"d": Load(1, 1.0), "e": Load(1, 0.5)}
    kept = make_plan([], running, AUTO, 3, loads)
    assert kept.is_empty
    changes = make_plan([], running, AUTO, 3, loads, Balance.MOVE).changes
    reason = "moved from cluster_001, which carries 90.0 seconds a round"
    assert [change for change in changes if change.action is not Action.KEEP] == [
        TaskChange(Action.UPDATE, task("c", "cluster_002"), reason)
    ]
    pinned = make_plan([], running, GamesSettings(pinned={"c": "cluster_001"}), 3, loads, Balance.MOVE)
    assert [change.task.game for change in pinned.changes if change.action is Action.UPDATE] == ["b"]


def test_a_game_changes_clusters_for_one_reason_in_a_plan() -> None:
    running = {"a": "cluster_001", "b": "cluster_001", "d": "cluster_002", "e": "cluster_002", "f": "cluster_002"}
    loads = {game: Load(1, 30.0 if game in "abc" else 1.0) for game in "abcdef"}
    changes = make_plan(["c"], running, AUTO, 3, loads, Balance.MOVE).changes
    assert [change for change in changes if change.action is not Action.KEEP] == [
        TaskChange(
            Action.UPDATE, task("b", "cluster_002"), "moved from cluster_001, which carries 90.0 seconds a round"
        ),
        TaskChange(Action.CREATE, task("c"), "new game in bronze"),
        TaskChange(Action.UPDATE, task("d"), "moved from cluster_002, which takes a heavier game"),
    ]


def test_a_game_that_is_not_on_the_list_any_more_is_deleted_and_its_rows_wait() -> None:
    plan = make_plan(["go"], {"go": "cluster_001", "ludo": "cluster_001"}, ALLOW, 20)
    assert plan.changes == (
        TaskChange(Action.KEEP, task("go"), "nothing changed"),
        TaskChange(Action.DELETE, task("ludo"), "games.allow does not name it any more"),
    )
    assert plan.waiting == (WaitingGame("ludo", "games.policy is allow-list and games.allow does not name it"),)
    assert plan.tasks == (task("go"),)


def test_a_game_on_the_list_that_bronze_does_not_have_is_not_created() -> None:
    assert make_plan(["chess"], {}, ALLOW, 20).tasks == (task("chess"),)


def test_games_over_the_limit_wait_and_those_on_the_list_do_not_count() -> None:
    plan = make_plan(["a", "b", "chess", "go"], {}, GamesSettings(allow=("chess", "go"), limit=1), 20)
    assert [task.game for task in plan.tasks] == ["a", "chess", "go"]
    assert plan.waiting == (WaitingGame("b", "games.limit is 1 and as many games are running"),)


def test_a_lower_limit_stops_no_game_that_runs() -> None:
    plan = make_plan(["a", "b", "c"], {"a": "cluster_001", "b": "cluster_001"}, GamesSettings(limit=1), 20)
    assert [change.action for change in plan.changes] == [Action.KEEP, Action.KEEP]
    assert [waiting.game for waiting in plan.waiting] == ["c"]


def test_two_games_that_would_share_a_table_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # no two such names are known: the hash would have to collide
    monkeypatch.setattr(plan_module, "names_of", lambda game: GameNames(game, "same"))
    with pytest.raises(PlanRefused) as refused:
        make_plan(["chess", "go"], {}, AUTO, 20)
    assert refused.value.message == "The games 'chess' and 'go' would share the table same."
    assert refused.value.fields == {"games": ("chess", "go")}


def test_the_plan_id_names_the_content_and_never_changes_between_releases() -> None:
    assert make_plan(["chess"], {}, AUTO, 20).plan_id == "4d4c9324581e"
    assert make_plan([], {}, AUTO, 20).plan_id == "a683096011db"


@given(seen_games, running_games, games_settings, sizes, known_loads)
def test_the_plan_of_an_applied_plan_keeps_everything(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int, loads: dict[str, Load]
) -> None:
    first = make_plan(seen, running, games, per_cluster, loads, Balance.MOVE)
    again = make_plan(seen | running.keys(), applied(first), games, per_cluster, loads)
    assert [change.action for change in again.changes] == [Action.KEEP] * len(first.tasks)
    assert (again.tasks, again.waiting) == (first.tasks, first.waiting)


@given(seen_games, running_games, games_settings, sizes, known_loads)
def test_every_game_runs_or_waits_and_never_both(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int, loads: dict[str, Load]
) -> None:
    plan = make_plan(seen, running, games, per_cluster, loads, Balance.MOVE)
    runs, waits = [task.game for task in plan.tasks], [waiting.game for waiting in plan.waiting]
    assert sorted(runs + waits) == sorted(seen | running.keys())
    deleted = {change.task.game for change in plan.changes if change.action is Action.DELETE}
    assert deleted == running.keys() - set(runs)


@given(seen_games, running_games, games_settings, sizes, known_loads)
def test_keys_are_unique_and_no_cluster_is_too_full(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int, loads: dict[str, Load]
) -> None:
    tasks = make_plan(seen, running, games, per_cluster, loads, Balance.MOVE).tasks
    assert len({task.key.lower() for task in tasks}) == len(tasks)
    assert max(Counter(task.cluster for task in tasks).values(), default=0) <= per_cluster


@given(seen_games, running_games, games_settings, sizes, known_loads, st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_of_what_it_is_made_from(
    seen: set[str],
    running: dict[str, str],
    games: GamesSettings,
    per_cluster: int,
    loads: dict[str, Load],
    random: Random,
) -> None:
    shuffled, moved, mixed = sorted(seen), sorted(running.items()), sorted(loads.items())
    for each in (shuffled, moved, mixed):
        random.shuffle(each)
    one = make_plan(seen, running, games, per_cluster, loads, Balance.MOVE)
    other = make_plan(shuffled, dict(moved), games, per_cluster, dict(mixed), Balance.MOVE)
    assert (one, one.plan_id) == (other, other.plan_id)


@given(seen_games, running_games, games_settings, sizes, known_loads)
def test_plans_that_differ_in_what_they_do_have_different_ids(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int, loads: dict[str, Load]
) -> None:
    plan = make_plan(seen, running, games, per_cluster, loads, Balance.MOVE)
    again = make_plan(seen | running.keys(), applied(plan), games, per_cluster, loads)
    assert (plan.plan_id == again.plan_id) == plan.is_empty


@given(seen_games, running_games, games_settings, sizes, known_loads)
def test_a_plan_moves_few_games_beside_those_that_must(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int, loads: dict[str, Load]
) -> None:
    assume(max(Counter(running.values()).values(), default=0) <= per_cluster)
    plan = make_plan(seen, running, games, per_cluster, loads, Balance.MOVE)
    moved = {change.task.game for change in plan.changes if change.action is Action.UPDATE}
    pinned = {game for game, cluster in games.pinned.items() if running.get(game, cluster) != cluster}
    # each game that was pinned just now may push another out
    assert len(moved) <= most_moves(len(plan.tasks)) + 2 * len(pinned)


@given(seen_games, running_games, games_settings, sizes, known_loads)
def test_pinned_games_that_run_are_where_they_are_pinned(
    seen: set[str], running: dict[str, str], games: GamesSettings, per_cluster: int, loads: dict[str, Load]
) -> None:
    runs = applied(make_plan(seen, running, games, per_cluster, loads, Balance.MOVE))
    assert {game: runs[game] for game in games.pinned if game in runs}.items() <= games.pinned.items()


def test_a_game_of_the_registry_is_planned_with_the_reason_that_it_is_there() -> None:
    plan = make_plan(
        ["chess"], {"go": "cluster_001"}, GamesSettings(limit=3), 20, registered=["chess", "go", "ludo", "x"]
    )
    assert [(change.action, change.task.game, change.reason) for change in plan.changes] == [
        (Action.CREATE, "chess", "new game in bronze"),
        (Action.KEEP, "go", "nothing changed"),
        (Action.CREATE, "ludo", "new game in the registry"),
    ]
    assert [waiting.game for waiting in plan.waiting] == ["x"]


def test_rows_that_wait_come_before_names_that_only_the_registry_has() -> None:
    registered = ["a1", "a2", "a3", "zeta"]
    plan = make_plan(["zeta"], {}, GamesSettings(limit=3), 20, registered=registered)
    assert [task.game for task in plan.tasks] == ["a1", "a2", "zeta"]
    assert [waiting.game for waiting in plan.waiting] == ["a3"]
