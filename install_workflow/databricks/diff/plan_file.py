"""A plan as a file, to be looked at now and applied later, if the workspace is still as it was. Pure."""

from __future__ import annotations

import json

from demux.core.control.record_format import mistake_in
from demux.core.errors import PlanRefused
from install_workflow.databricks.diff.changes import WorkspacePlan
from install_workflow.databricks.diff.render import PLAN, content_of

VERSION = 3


def to_text(plan: WorkspacePlan, host: str) -> str:
    """Return the plan as JSON: what `content_of` has, a version, the workspace, and each job as it should be."""
    content = {"version": VERSION, "workspace": host, **content_of(plan, with_jobs=True)}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def from_text(text: str, host: str) -> WorkspacePlan:
    """Return the plan that `to_text` wrote.

    Raises:
        PlanRefused: it is no such text, of another version or workspace, or was changed.
    """
    try:
        content = json.loads(text)
        if content["version"] != VERSION:
            raise _refused(f"has version {content['version']!r}, and this release reads {VERSION}")
        if content["workspace"] != host:
            raise PlanRefused(
                f"The saved plan is for the workspace {content['workspace']}, and this is {host}.",
                "Log in to that workspace, or make the plan again.",
            )
        plan = PLAN.validate_python(content)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise _refused(f"is no plan ({mistake_in(error)})") from None
    if plan.plan_id != content["plan_id"]:
        raise _changed()
    return plan


def require_same_state(saved: WorkspacePlan, now: WorkspacePlan) -> None:
    """Let a saved plan pass if the workspace still is as it was.

    Args:
        now: a plan that was just made for the same deployment.

    Raises:
        PlanRefused: the workspace changed since.
    """
    if saved.state_id != now.state_id:
        raise PlanRefused(
            f"The workspace changed since the plan {saved.plan_id} was saved "
            f"(state {saved.state_id} then, {now.state_id} now).",
            "Make the plan again, look at it, and apply that.",
            saved=saved.state_id,
            now=now.state_id,
        )


def require_unchanged(saved: WorkspacePlan, now: WorkspacePlan) -> None:
    """Let a saved plan pass if it is nothing but what takes the workspace to its jobs, reasons and counts included.

    Args:
        now: a plan that was just made for the jobs of the saved one.

    Raises:
        PlanRefused: the file was edited; what is shown, or what is done, would not be the plan.
    """
    if saved != now:
        raise _changed()


def _changed() -> PlanRefused:
    return _refused("was changed after it was saved")


def _refused(what: str) -> PlanRefused:
    return PlanRefused(f"The saved plan {what}.", "Save it again: `demux plan --out FILE`.")
