"""What was discovered, in the plan of a deployment: the registry's games, and moves for balance."""

from __future__ import annotations

from demux.core.control.games_and_rounds import Load
from demux.core.names import names_of
from demux.core.schemas.registry_selection import RegisteredGames
from demux.core.settings.loading.loader import load
from install_workflow.databricks.diff.deployed_games import DiscoveredGames, plan_games
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.databricks.jobs.job import DeployedJob
from install_workflow.planning.plan import Action, Task, WaitingGame
from install_workflow.planning.rebalance import Balance

SETTINGS = load(
    None,
    {},
    {
        "root": "/Volumes/main/demux/data",
        "databricks.name": "prod",
        "maintain.every": "never",
        "databricks.cluster.node_type": "i3.xlarge",
        "databricks.wheel_path": "/Volumes/main/ops/wheels",
        "run.streams_per_cluster": "4",
    },
)
PLACED = {f"game_{letter}": f"cluster_00{1 + number // 4}" for number, letter in enumerate("abcdefgh")}
LOADS = {game: Load(100, 10 if cluster == "cluster_001" else 0.1) for game, cluster in PLACED.items()}


def deployed() -> list[DeployedJob]:
    tasks = [Task(game, names_of(game).task_key, cluster) for game, cluster in PLACED.items()]
    (job,) = make_jobs(tasks, SETTINGS, "/Volumes/main/ops/wheels/x.whl")
    return [DeployedJob(1, job.part, job.settings)]


def test_games_move_for_balance_only_where_they_may() -> None:
    kept = plan_games(deployed(), SETTINGS, DiscoveredGames(loads=LOADS))
    assert {change.action for change in kept.changes} == {Action.KEEP}
    moved = plan_games(deployed(), SETTINGS, DiscoveredGames(loads=LOADS, rebalance=Balance.MOVE))
    reasons = {change.task.game: change.reason for change in moved.changes if change.action is Action.UPDATE}
    assert reasons == {
        "game_d": "moved from cluster_001, which carries 40.0 seconds a round",
        "game_e": "moved from cluster_002, which takes a heavier game",
    }


def test_the_registrys_games_are_planned_and_what_cannot_be_a_game_is_shown() -> None:
    registered = RegisteredGames(frozenset({"new"}), (("a\nb", "It has a line end."),))
    plan = plan_games(deployed(), SETTINGS, DiscoveredGames(registered=registered))
    assert [change.task.game for change in plan.changes if change.action is Action.CREATE] == ["new"]
    assert plan.waiting == (WaitingGame("a\nb", "its subject names what no game can be called. It has a line end."),)
