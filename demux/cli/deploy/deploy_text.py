"""What the commands about a workspace print; every name from outside is made printable."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from demux.core.names import names_of
from demux.core.text import printable
from install_workflow.databricks.apply.apply_jobs import CallMoment, JobStep
from install_workflow.databricks.apply.deploy import DeploymentPreview, FileCall, FileStep, Removal
from install_workflow.databricks.apply.wheel import Wheel, is_our_wheel
from install_workflow.databricks.diff.changes import JobCall, WorkspacePlan
from install_workflow.databricks.diff.render import as_text, content_of, with_names
from install_workflow.databricks.grants.diff import GrantsPlan
from install_workflow.databricks.grants.render import content_of as grants_content
from install_workflow.planning.plan import Action, waiting_lines

_MARKS = {JobCall.CREATE: "+", JobCall.RESET: "~", JobCall.PERMIT: "~", JobCall.DELETE: "-"}


def plan_text(outlook: DeploymentPreview, wheel: Wheel, everything: bool = False) -> str:
    """Return the files that are missing, the games that move and why, those that wait, and the plan of the jobs."""
    missing = [*([wheel.path] if outlook.must_upload else []), *(file.path for file in outlook.files)]
    lines = [f"+ upload {printable(path)}" for path in missing]
    lines += [
        f"~ game {printable(change.task.game)} to {change.task.cluster}: {change.reason}"
        for change in outlook.games.changes
        if change.action is Action.UPDATE
    ]
    return "\n".join([*lines, *waiting_lines(outlook.games.waiting), as_text(_shown(outlook), everything)])


def plan_content(outlook: DeploymentPreview, wheel: Wheel, grants: GrantsPlan | None) -> dict[str, Any]:
    """Return the plan as `content_of` has it, with more fields.

    They are: wheel (path, upload), settings_files (paths to upload), waiting (game, reason), and grants: null, or what
    `content_of` of grants has.
    """
    return {
        **content_of(_shown(outlook)),
        "wheel": {"path": wheel.path, "upload": outlook.must_upload},
        "settings_files": [file.path for file in outlook.files],
        "waiting": [asdict(each) for each in outlook.games.waiting],
        "grants": grants_content(grants) if grants else None,
    }


def _shown(outlook: DeploymentPreview) -> WorkspacePlan:
    games = (change.task.game for change in outlook.games.changes)
    return with_names(outlook.plan, {names_of(game).key: game for game in games})


def removal_text(removal: Removal) -> str:
    """Return a line for each file that goes or stays, for the record and empty folders, then the plan of the jobs."""
    going = (*removal.files, *filter(None, [removal.record]), *removal.empty)
    lines = [f"- remove {printable(path)}" for path in going]
    lines += [f"- remove {printable(path)}, if nothing else is in it" for path in removal.made]
    lines += [
        f"! leave  {printable(path)}: a job of another deployment {'runs' if is_our_wheel(path) else 'reads'} it"
        for path in removal.shared
    ]
    return "\n".join([*lines, as_text(removal.plan)])


def step_line(step: JobStep | FileStep) -> str:
    """Return the line of a call that was made; "" for one that is only about to be."""
    match step:
        case FileStep(FileCall.UPLOAD, path):
            return f"+ upload {printable(path)}: done"
        case FileStep(_, path):
            return f"- remove {printable(path)}: done"
        case JobStep(CallMoment.AFTER, call, _, name, job_id):
            return f"{_MARKS[call]} {call.value:6} {printable(name)} (job {job_id}): done"
        case JobStep():
            return ""
