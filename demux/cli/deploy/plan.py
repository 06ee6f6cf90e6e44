"""`demux plan`: what runs where and what would change, on this machine or in a workspace."""

from __future__ import annotations

from pathlib import Path

from demux.api.root import Root
from demux.cli.command import console, session_to_look, warn
from demux.cli.output.print_json import print_json
from demux.cli.repair.maintain_text import next_line
from demux.core.root.layout import layout_of
from demux.core.settings.settings import Settings
from demux.operations.maintenance.state import next_due, read_state
from install_workflow.planning.plan import as_text, content_of


def plan(
    settings: Settings, json: bool, everything: bool, out: Path | None, discovered: bool, wheel: str | None
) -> None:
    """Show which game would run where, what would change, and which games wait; change nothing."""
    if settings.databricks.name is None and out is None and not discovered and wheel is None:
        _plan_here(settings, json, everything)
        return
    # the SDK of Databricks takes longer to import than the local plan takes
    from demux.cli.deploy.workspace_plan import plan_workspace

    plan_workspace(settings, json, everything, out, discovered, wheel)


def _plan_here(settings: Settings, json: bool, everything: bool) -> None:
    """Print which game would run where on this machine, what would change, and which games wait."""
    layout = layout_of(settings)
    with session_to_look(settings, "plan", may_be_new=True) as spark:
        shown = Root(settings).plan(spark, warn)
        maintenance = next_line(next_due(read_state(layout).since, settings.maintain.interval), settings.maintain.every)
    if json:
        print_json(content_of(shown))
        return
    console.print(as_text(shown, everything), soft_wrap=True)
    console.print(f"Engine {settings.round_engine.value}.")
    console.print(maintenance)
