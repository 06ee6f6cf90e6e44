"""Which games the deployed jobs run, read from what the jobs say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from demux.core.control.games_and_rounds import Load
from demux.core.errors import PlanRefused
from demux.core.names import names_of
from demux.core.settings.loading.loader import load
from install_workflow.databricks.diff.deployed_games import DiscoveredGames, plan_games, running
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.databricks.jobs.job import DeployedJob
from install_workflow.planning.plan import Action, Task

BASE = {
    "root": "/Volumes/main/demux/data",
    "databricks.name": "prod",
    "databricks.cluster.node_type": "i3.xlarge",
    "databricks.wheel_path": "/Volumes/main/ops/wheels",
}
HOSTILE = ["chess", "将棋", "--help", "a b=c", "it's", "x" * 80]
NOBODY = DiscoveredGames()


def deployed(games: dict[str, str], **changes: str) -> list[DeployedJob]:
    """The jobs that an installer makes of games on clusters."""
    tasks = [Task(game, names_of(game).task_key, cluster) for game, cluster in games.items()]
    settings = load(None, {}, {**BASE, **{key.replace("__", "."): value for key, value in changes.items()}})
    jobs = make_jobs(tasks, settings, "/Volumes/main/ops/wheels/x.whl")
    return [DeployedJob(number, job.part, job.settings) for number, job in enumerate(jobs)]


def by_hand(**task: Any) -> DeployedJob:
    return DeployedJob(1, "all", {"tasks": [{"task_key": "deserialize_x", **task}]})


def wheel(*parameters: str) -> dict[str, Any]:
    return {"python_wheel_task": {"parameters": list(parameters)}}


@pytest.mark.parametrize("granularity", ["game", "cluster"])
@pytest.mark.parametrize("per_job", ["1000", "6"])
def test_every_game_is_read_back_with_its_cluster(granularity: str, per_job: str) -> None:
    games = {game: f"cluster_{number // 2 + 1:03d}" for number, game in enumerate(HOSTILE)}
    changes = {"databricks__granularity": granularity, "databricks__tasks_per_job": per_job}
    found = running(deployed(games, **changes, run__streams_per_cluster="2"), ["将棋"])
    assert (found.games, found.clusters, found.unnamed) == (frozenset(games), games, ())


def test_a_game_that_is_told_by_its_key_has_its_name_from_elsewhere() -> None:
    games = {"{{job.id}}": "cluster_001"}
    assert running(deployed(games), ["{{job.id}}"]).clusters == games
    key = names_of("{{job.id}}").key
    assert running(deployed(games), ["chess"]).unnamed == (key,)
    with pytest.raises(PlanRefused, match=key) as refused:
        plan_games(deployed(games), load(None, {}, BASE), NOBODY)
    assert refused.value.remedy == "Name them in games.allow, or plan with --discovered."
    recorded = DiscoveredGames(recorded=frozenset(games))
    assert {task.game for task in plan_games(deployed(games), load(None, {}, BASE), recorded).tasks} == set(games)
    assert plan_games(deployed({}), load(None, {}, BASE), recorded).tasks == ()
    listed = load(None, {}, {**BASE, "games.policy": "allow-list"})
    assert plan_games(deployed(games), listed, NOBODY).tasks == ()
    plan = plan_games(deployed(games), load(None, {}, BASE), DiscoveredGames(frozenset(games)))
    assert [task.game for task in plan.tasks] == ["{{job.id}}"]


def test_what_was_edited_by_hand_is_read_as_far_as_it_makes_sense() -> None:
    assert running([by_hand(**wheel("deserialize", "--game", "go"))], ()).games == {"go"}
    assert running([by_hand(job_cluster_key="bronze", **wheel("--game=go"))], ()).clusters == {}
    assert running([by_hand(job_cluster_key="c", **wheel("--game="))], ()).games == frozenset()
    assert running([by_hand(job_cluster_key="c", **wheel("--game-key=../x"))], ()).unnamed == ()
    assert running([by_hand(notebook_task={})], ()).games == frozenset()
    assert running([DeployedJob(1, "all", {})], ()).games == frozenset()
    named = {"python_wheel_task": {"named_parameters": {"game": "chess"}}}
    assert running([by_hand(job_cluster_key="cluster_002", **named)], ()).clusters == {"chess": "cluster_002"}


def test_of_two_jobs_with_a_game_the_older_one_counts() -> None:
    one, two = deployed({"go": "cluster_001"}), deployed({"go": "cluster_007"})
    both = [DeployedJob(9, "all", two[0].settings), DeployedJob(3, "all", one[0].settings)]
    assert running(both, ()).clusters == {"go": "cluster_001"}


def test_the_games_are_those_of_the_settings_of_the_jobs_and_of_bronze() -> None:
    settings = load(None, {}, {**BASE, "games.allow": "ludo"})
    plan = plan_games(deployed({"go": "cluster_003"}), settings, DiscoveredGames(frozenset({"chess"})))
    assert [(task.game, task.cluster) for task in plan.tasks] == [
        ("chess", "cluster_003"),
        ("go", "cluster_003"),
        ("ludo", "cluster_003"),
    ]


def test_with_an_allow_list_a_game_that_is_not_on_it_is_retired() -> None:
    settings = load(None, {}, {**BASE, "games.policy": "allow-list", "games.allow": "chess"})
    plan = plan_games(deployed({"chess": "cluster_001", "go": "cluster_001"}), settings, NOBODY)
    assert [(change.task.game, change.action) for change in plan.changes] == [
        ("chess", Action.KEEP),
        ("go", Action.DELETE),
    ]


def test_what_bronze_knows_of_loads_places_new_games() -> None:
    settings = load(None, {}, {**BASE, "run.streams_per_cluster": "3"})
    now = {"a": "cluster_001", "b": "cluster_001", "c": "cluster_002", "d": "cluster_002"}
    loads = {"a": Load(1, 60.0), "c": Load(1, 1.0)}
    plan = plan_games(deployed(now), settings, DiscoveredGames(frozenset({"new"}), loads))
    assert {task.game: task.cluster for task in plan.tasks}["new"] == "cluster_002"


def test_a_game_that_was_put_onto_another_cluster_by_hand_goes_on_at_the_limit() -> None:
    settings = load(None, {}, {**BASE, "games.limit": "1"})
    moved = by_hand(existing_cluster_id="0101-000000-x", **wheel("deserialize", "--game=poker"))
    plan = plan_games([*deployed({"chess": "cluster_001"}), moved], settings, DiscoveredGames(frozenset({"a_new_one"})))
    assert [task.game for task in plan.tasks] == ["chess", "poker"]
    assert [each.game for each in plan.waiting] == ["a_new_one"]


FLEET = {**BASE, "run.engine": "fleet"}


def test_a_fleet_packs_the_games_of_streams_anew_as_their_tasks_change_anyway() -> None:
    games = {f"g{number}": f"cluster_{number + 1:03d}" for number in range(4)}
    plan = plan_games(deployed(games), load(None, {}, FLEET), NOBODY)
    assert {task.cluster for task in plan.tasks} == {"cluster_001"}
    two = plan_games(deployed(games), load(None, {}, {**FLEET, "run.games_per_cluster": "2"}), NOBODY)
    assert [task.cluster for task in two.tasks] == ["cluster_001", "cluster_001", "cluster_002", "cluster_002"]
    pins = {"games.pinned": "{g3: big}", "run.games_per_cluster": "1"}
    pinned = plan_games(deployed(games), load(None, {}, {**FLEET, **pins}), NOBODY)
    assert [task.cluster for task in pinned.tasks] == ["cluster_001", "cluster_002", "cluster_003", "big"]


def test_a_fleets_game_keeps_its_cluster_and_takes_in_those_that_an_apply_left_with_streams() -> None:
    by_fleet = deployed({"a": "cluster_002", "b": "cluster_002"}, run__engine="fleet")
    left = replace(deployed({"c": "cluster_005"})[0], job_id=9)
    plan = plan_games([*by_fleet, left], load(None, {}, FLEET), NOBODY)
    assert [(task.game, task.cluster) for task in plan.tasks] == [(game, "cluster_002") for game in "abc"]


def test_streams_that_come_after_a_fleet_stay_where_there_is_room_and_the_others_go_elsewhere() -> None:
    now = deployed(dict.fromkeys("abc", "cluster_001"), run__engine="fleet")
    plan = plan_games(now, load(None, {}, {**BASE, "run.streams_per_cluster": "2"}), NOBODY)
    assert [task.cluster for task in plan.tasks] == ["cluster_001", "cluster_001", "cluster_002"]


def test_another_engine_retires_nobody_at_the_limit_and_only_whom_an_allow_list_does_not_name() -> None:
    now = deployed({"a": "cluster_001", "b": "cluster_002"})
    limited = load(None, {}, {**FLEET, "games.limit": "1"})
    assert [task.game for task in plan_games(now, limited, NOBODY).tasks] == ["a", "b"]
    listed = load(None, {}, {**FLEET, "games.policy": "allow-list", "games.allow": "b"})
    assert [task.game for task in plan_games(now, listed, NOBODY).tasks] == ["b"]
