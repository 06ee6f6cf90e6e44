"""`demux plan`: what runs where and what would change, on this machine or in a workspace."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.api.root import Root
from demux.cli.command import ROOT, SET, SETTINGS, console, session_to_look, settings_of, warn
from demux.cli.repair.maintain_text import next_line
from demux.core.root.layout import layout_of
from demux.core.settings.settings import Settings
from demux.operations.maintenance.state import next_due, read_state
from install_workflow.planning.plan import as_json, as_text

WHEEL = typer.Option(
    None, "--wheel", help="Wheel to install: a file, or a path in the workspace. Default: built from the checkout."
)
DISCOVERED = typer.Option(False, "--discovered", help="Also take the games that bronze has.")


def plan(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    json: bool = typer.Option(False, "--json", help="Print the plan as JSON."),
    everything: bool = typer.Option(False, "--all", help="Also list what stays as it is."),
    out: Path | None = typer.Option(None, "--out", help="Save the plan for `demux apply --plan FILE`.", metavar="FILE"),
    discovered: bool = DISCOVERED,
    wheel: str | None = WHEEL,
) -> None:
    """Show which game would run where, what would change, and which games wait; change nothing.

    With `databricks.name` it is about the jobs in the workspace.

    Example: `demux plan --set games.limit=10`
    """
    settings = settings_of(settings_file, root, changes)
    if settings.databricks.name is None and out is None and not discovered and wheel is None:
        _plan_here(settings, json, everything)
        return
    # the SDK of Databricks takes longer to import than the local plan takes
    from demux.cli.deploy.workspace_plan import plan_workspace

    plan_workspace(settings, json, everything, out, discovered, wheel)


def _plan_here(settings: Settings, json: bool, everything: bool) -> None:
    """Print which game would run where on this machine, what would change, and which games wait."""
    layout = layout_of(settings)
    with session_to_look(settings, "plan") as spark:
        shown = Root(settings).plan(spark, warn)
        maintenance = next_line(next_due(read_state(layout).since, settings.maintain.interval), settings.maintain.every)
    text = as_json(shown) if json else as_text(shown, everything)
    console.print(text, soft_wrap=True)
    if not json:
        console.print(f"Engine {settings.round_engine.value}.")
        console.print(maintenance)
