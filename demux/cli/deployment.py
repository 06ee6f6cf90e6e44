"""What the commands about a deployment share: the wheel, the games that were seen, and the person who is asked."""

from __future__ import annotations

import sys

import typer

from demux.cli.deploy_text import step_line
from demux.cli.workplace import console, workplace
from demux.errors import ExitCode
from demux.settings import Settings
from install_workflow.databricks.apply import Step
from install_workflow.databricks.deploy import FileStep, deployment_of
from install_workflow.databricks.running import Discovered
from install_workflow.databricks.wheel import Wheel, find_wheel, wheel_folder
from install_workflow.run import look

WHEEL = typer.Option(
    None, "--wheel", help="Wheel to install: a file, or a path in the workspace. Default: built from the checkout."
)
DISCOVERED = typer.Option(False, "--discovered", help="Also take the games that bronze has; needs Spark.")
YES = typer.Option(False, "--yes", "-y", help="Do not ask.")


def wheel_for(settings: Settings, given: str | None) -> Wheel:
    """Return the wheel of the deployment; raises as `find_wheel`."""
    return find_wheel(given, wheel_folder(settings.databricks.wheel_path or "", deployment_of(settings)))


def games_seen(settings: Settings, discovered: bool) -> Discovered:
    """Return what bronze says of the games, by Spark; nothing where that is not wanted."""
    if not discovered:
        return Discovered()
    with workplace(settings, "plan", lock=False) as place:
        outlook = look(place.spark, place.settings, place.control)
        history = place.control.history()
    games = {change.task.game for change in outlook.plan.changes} | {each.game for each in outlook.plan.waiting}
    return Discovered(frozenset(games), history.loads)


def print_step(step: Step | FileStep) -> None:
    """Print a call that was made."""
    if line := step_line(step):
        console.print(line, soft_wrap=True)


def somebody_is_there() -> bool:
    """Return whether somebody can be asked."""
    # a task on a cluster may have no standard input at all
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str) -> None:
    """Ask, and end the command unless the answer is yes."""
    if not typer.confirm(question):
        console.print("nothing was changed")
        raise typer.Exit(ExitCode.INTERRUPTED)
