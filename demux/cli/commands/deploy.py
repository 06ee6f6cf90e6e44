"""Commands about where games run, on how much, and who reads them: plan, size, apply, destroy, export, grants."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.options import (
    DISCOVERED,
    JSON,
    TAKE_OVER,
    WAIT,
    WHEEL,
    YES,
    command_group,
    runs,
)

export = command_group("Write the plan in the form of another tool.")
grants = command_group("Say who may read which game's table in Unity Catalog.")


@runs("demux.cli.deploy.plan:plan")
def plan(
    json: bool = JSON,
    everything: bool = typer.Option(False, "--all", help="Also list what stays as it is."),
    out: Path | None = typer.Option(None, "--out", help="Save the plan for `demux apply --plan FILE`.", metavar="FILE"),
    discovered: bool = DISCOVERED,
    wheel: str | None = WHEEL,
) -> None:
    """Show which game would run where, what would change, and which games wait; change nothing.

    With `databricks.name` it is about the jobs in the workspace.

    Example: `demux plan --set games.limit=10`
    """


def size(
    games: int = typer.Option(..., help="How many games there are."),
    rows: str = typer.Option(..., help="New rows of all games: 2e9/day, 25000/s.", metavar="ROWS/TIME"),
    active: int | None = typer.Option(None, help="Games with new rows in a round. Default: all of them."),
    every: str = typer.Option(
        "30s", help="From the start of a round to that of the next: 30s, 5m or 1h.", metavar="TIME"
    ),
    bytes_per_record: int = typer.Option(63, "--bytes", help="Bytes of a wrapped record, on average."),
    columns: int = typer.Option(10, help="Columns of a game's table, on average."),
    json: bool = JSON,
) -> None:
    """Estimate cores, memory, requests, files and bytes a day of a load, by constants that were measured.

    Reads no settings and no root, and starts no Spark.

    Example: `demux size --games 3000 --rows 2e9/day --active 500`
    """
    from demux.cli.deploy.size import size as work

    work(games, rows, active, every, bytes_per_record, columns, json)


@runs("demux.cli.deploy.apply:apply")
def apply(
    saved: Path | None = typer.Option(
        None, "--plan", help="Apply this plan, unless the workspace changed since it was saved.", metavar="FILE"
    ),
    force: bool = typer.Option(
        False,
        "--force",
        help="Even where it removes more than a quarter of the games, or makes a second job of a name.",
    ),
    discovered: bool = DISCOVERED,
    wheel: str | None = WHEEL,
    take_over: bool = TAKE_OVER,
    wait: bool = WAIT,
    yes: bool = YES,
) -> None:
    """Install the jobs in the workspace, or change them to what the settings want; a second call changes nothing.

    Without `databricks.name`, write down which game runs where on this machine. On a terminal you are asked.

    Example: `demux apply --set databricks.name=prod --yes`
    """


@runs("demux.cli.deploy.destroy:destroy")
def destroy(
    tables: bool = typer.Option(
        False, "--tables", help="Also our tables below the root: silver, quarantine, bronze, control."
    ),
    checkpoints: bool = typer.Option(False, "--checkpoints", help="Also the streams' checkpoints."),
    take_over: bool = TAKE_OVER,
    wait: bool = WAIT,
    yes: bool = YES,
) -> None:
    """Remove what `demux apply` made: jobs, wheels, settings files, grants, record; or here, which game runs where.

    Tables and checkpoints stay, unless you ask for them; with a deployment, that needs a Spark here that reaches the
    root. Then the table control/deployments forgets the deployment; else it keeps its last rows. Source, registry,
    archive and log files always stay. All of it is listed before, and you are asked.

    Example: `demux destroy --tables --checkpoints`
    """


@export.command("bundle")
@runs("demux.cli.deploy.export:bundle")
def bundle(
    out: Path = typer.Option(
        ..., "--out", help="The folder to write; is made where it is not there.", metavar="FOLDER"
    ),
    discovered: bool = DISCOVERED,
    wheel: str | None = WHEEL,
) -> None:
    """Write a Databricks Asset Bundle that installs what `demux apply` would, and upload the wheel that it names.

    Example: `demux export bundle --out bundle`
    """


@grants.command("plan")
@runs("demux.cli.deploy.grants:plan")
def plan_grants(
    json: bool = JSON,
    everything: bool = typer.Option(False, "--all", help="Also list what stays as it is."),
) -> None:
    """Show which grants would be made or taken back, and which are not ours; change nothing.

    Example: `demux grants plan --set 'grants.games={chess: [chess-team]}'`
    """


@grants.command("apply")
@runs("demux.cli.deploy.grants:apply")
def apply_grants(
    json: bool = JSON,
    force: bool = typer.Option(False, "--force", help="Also if many tables lose their readers with their game."),
    yes: bool = YES,
) -> None:
    """Make and take back grants until they are as the settings say; those that others made stay.

    On a terminal you are asked.

    Example: `demux grants apply`
    """
