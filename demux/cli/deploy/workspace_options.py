"""What the commands about a deployment share: the wheel, the games that were seen, and the person who is asked."""

from __future__ import annotations

import os

from demux.cli.command import console, session_to_look
from demux.cli.deploy.deploy_text import step_line
from demux.core.control.games_and_rounds import Control
from demux.core.root.layout import layout_of
from demux.core.schemas.game_discovery import registered_games
from demux.core.schemas.registry_selection import Registries
from demux.core.settings.databricks import DatabricksSettings
from demux.core.settings.settings import Settings
from install_workflow.databricks.apply.apply_jobs import JobStep
from install_workflow.databricks.apply.deploy import FileStep, deployment_of
from install_workflow.databricks.apply.deployment_lock import DeploymentLock
from install_workflow.databricks.apply.wheel import Wheel, find_wheel
from install_workflow.databricks.diff.deployed_games import DiscoveredGames
from install_workflow.databricks.jobs.job import wheel_folder
from install_workflow.planning.round_plan import balance_since, preview_round


def wheel_for(settings: DatabricksSettings, given: str | None) -> Wheel:
    """Return the wheel of the deployment; raises as `find_wheel`."""
    return find_wheel(given, wheel_folder(settings.wheel_path or "", deployment_of(settings)))


def games_seen(turn: DeploymentLock, settings: Settings, discovered: bool) -> DiscoveredGames:
    """Return the games that the registries name, and where wanted what bronze says of the games.

    Args:
        turn: ours, with the record as it is.

    Raises:
        DemuxError: as `registered_games`, and as `session_to_look`.
    """
    registered = registered_games(settings, Registries(settings, os.environ))
    if not discovered:
        return DiscoveredGames(registered=registered, recorded=turn.games)
    with session_to_look(settings, "plan", may_be_new=True) as spark:
        control = Control(spark, layout_of(settings))
        outlook = preview_round(spark, settings, control)
        history = control.history()
    games = {change.task.game for change in outlook.plan.changes} | {each.game for each in outlook.plan.waiting}
    rebalance = balance_since(turn.last_change, history)
    return DiscoveredGames(frozenset(games), history.loads, registered, rebalance, turn.games)


def print_step(step: JobStep | FileStep) -> None:
    """Print a call that was made."""
    if line := step_line(step):
        console.print(line, soft_wrap=True)
