"""`demux grants plan` and `demux grants apply`: who may read which game's table in Unity Catalog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from demux.cli.workplace import ROOT, SET, SETTINGS, console, settings_of
from install_workflow.databricks.connection import Connection
from install_workflow.databricks.grants import GrantChange, require_modest
from install_workflow.databricks.grants_apply import Outlook, look
from install_workflow.databricks.grants_apply import apply as apply_grants
from install_workflow.databricks.grants_render import as_json, as_text, call_lines
from install_workflow.databricks.readers import place_of

grants = typer.Typer(help="Say who may read which game's table in Unity Catalog.", no_args_is_help=True)

JSON = typer.Option(False, "--json", help="Print JSON.")


@grants.callback()
def group() -> None:
    """Say who may read which game's table in Unity Catalog."""


@grants.command("plan")
def plan(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    json: bool = JSON,
    everything: bool = typer.Option(False, "--all", help="Also list what stays as it is."),
) -> None:
    """Show which grants would be made or taken back, and which are not ours; change nothing.

    Example: `demux grants plan --set 'grants.games={chess: [chess-team]}'`
    """
    found = _looked(settings_file, root, changes).plan
    console.print(as_json(found) if json else as_text(found, everything), soft_wrap=True)


@grants.command("apply")
def apply(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    json: bool = JSON,
    force: bool = typer.Option(False, "--force", help="Also if many tables lose their readers with their game."),
) -> None:
    """Make and take back grants until they are as the settings say; those that others made stay.

    Example: `demux grants apply`
    """
    found = _looked(settings_file, root, changes)
    if not force:
        require_modest(found.plan)
    if not json:
        console.print(as_text(found.plan), soft_wrap=True)
    outcome = apply_grants(found, lambda _, made: None if json else _print_call(made))
    if json:
        console.print(as_json(found.plan, outcome), soft_wrap=True)
    else:
        console.print(f"{len(outcome.done)} grants changed")
        for error in outcome.failed[1:]:
            console.print(str(error), style="red", soft_wrap=True)
    if outcome.failed:
        raise outcome.failed[0]


def _looked(settings_file: Path | None, root: str | None, changes: list[str]) -> Outlook:
    settings = settings_of(settings_file, root, changes)
    # mistakes in the settings come before those of the login
    place_of(settings)
    return look(Connection(), settings)


def _print_call(made: Sequence[GrantChange]) -> None:
    for line in call_lines(made):
        console.print(f"done: {line}", soft_wrap=True)
