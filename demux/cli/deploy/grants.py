"""`demux grants plan` and `demux grants apply`: who may read which game's table in Unity Catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from demux.cli.command import ask, can_ask, console
from demux.cli.deploy.workspace import connect, read_deployment_lock
from demux.cli.output.print_json import print_json
from demux.core.errors import DemuxError
from demux.core.settings.settings import Settings
from demux.core.text import count_text, printable
from install_workflow.databricks.grants.apply import GrantsPreview, preview_grants
from install_workflow.databricks.grants.apply import apply as apply_grants
from install_workflow.databricks.grants.desired import place_of
from install_workflow.databricks.grants.diff import GrantChange, require_modest
from install_workflow.databricks.grants.render import as_text, call_lines, content_of
from install_workflow.databricks.jobs.jobs_api import Workspace


def plan(settings: Settings, json: bool, everything: bool) -> None:
    """Show which grants would be made or taken back, and which are not ours; change nothing."""
    found = _preview(settings).plan
    if json:
        print_json(content_of(found))
    else:
        console.print(as_text(found, everything), soft_wrap=True)


def apply(settings: Settings, json: bool, force: bool, yes: bool) -> None:
    """Make and take back grants until they are as the settings say; those that others made stay."""
    found = _preview(settings)
    if not force:
        require_modest(found.plan)
    if not json:
        console.print(as_text(found.plan), soft_wrap=True)
    if not found.plan.is_empty and not yes and can_ask():
        ask("Apply this plan?", err=json)
    if not json:
        make_grants(found)
        return
    outcome = apply_grants(found)
    print_json(content_of(found.plan, outcome))
    if outcome.failed:
        raise outcome.failed[0]


def make_grants(preview: GrantsPreview) -> None:
    """Make and take back grants until they are as the plan says, and print each call.

    Raises:
        DemuxError: the first of what the workspace refused, once all others were tried; or as `apply`.
    """
    raise_first(_made(preview, lambda: None))


def raise_first(failed: Sequence[DemuxError]) -> None:
    """Print all errors but the first, and raise that; return if there is none."""
    for error in failed[1:]:
        console.print(printable(str(error)), style="red", soft_wrap=True)
    if failed:
        raise failed[0]


def revoking_text(preview: GrantsPreview) -> str:
    """Return a line for our record, and for each grant that a destroyed deployment takes back; "" for none."""
    record = [f"- remove {printable(preview.files.folder)}"] if preview.kept.version else []
    return "\n".join([*record, *([as_text(preview.plan)] if preview.plan.changes else [])])


def take_back(preview: GrantsPreview, before: Callable[[], None]) -> Sequence[DemuxError]:
    """Take back all that is ours, print each call, and return what was refused; our record goes if nothing was.

    Raises:
        DemuxError: as `apply`, where nothing else can be tried.
    """
    if not preview.kept.version:
        return ()
    failed = _made(preview, before)
    if not failed and preview.files.remove():
        console.print(f"- remove {printable(preview.files.folder)}: done", soft_wrap=True)
    return failed


def _made(preview: GrantsPreview, before: Callable[[], None]) -> Sequence[DemuxError]:
    outcome = apply_grants(preview, lambda _, made: _print_call(made), before)
    console.print(f"{count_text(len(outcome.done), 'grant')} changed")
    return outcome.failed


def grants_left_out(settings: Settings) -> str:
    """Return the sentence of a plan without grants that the settings ask for; "" where they ask for none."""
    if not settings.grants.games and not settings.grants.patterns:
        return ""
    if settings.tables.catalog is None:
        return "! grants: tables.catalog is not set, so nothing is granted"
    return "! grants are not in a saved plan: make them by `demux grants apply`"


def _preview(settings: Settings) -> GrantsPreview:
    # mistakes in the settings come before those of the login
    place_of(settings)
    connection = connect(settings)
    return preview_grants(
        connection, settings, known=read_deployment_lock(Workspace(connection), settings.databricks).games
    )


def _print_call(made: Sequence[GrantChange]) -> None:
    for line in call_lines(made):
        console.print(f"{line}: done", soft_wrap=True)
