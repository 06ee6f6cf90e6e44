"""What the commands about a workspace print; every name from outside is made printable."""

from __future__ import annotations

from json import dumps

from demux.text import printable
from install_workflow.databricks.apply import Moment, Step
from install_workflow.databricks.changes import Call
from install_workflow.databricks.deploy import FileCall, FileStep, Outlook, Removal
from install_workflow.databricks.render import as_text, content_of
from install_workflow.databricks.wheel import Wheel
from install_workflow.render import waiting_json, waiting_lines

_MARKS = {Call.CREATE: "+", Call.RESET: "~", Call.PERMIT: "~", Call.DELETE: "-"}


def plan_text(outlook: Outlook, wheel: Wheel, everything: bool = False) -> str:
    """Return the wheel if it is missing, the games that wait, and the plan of the jobs."""
    lines = [f"+ upload {printable(wheel.path)}"] if outlook.must_upload else []
    return "\n".join([*lines, *waiting_lines(outlook.games), as_text(outlook.plan, everything)])


def plan_json(outlook: Outlook, wheel: Wheel) -> str:
    """Return the plan as `content_of` has it, with the wheel (path, upload) and who waits (game, reason)."""
    content = {
        **content_of(outlook.plan),
        "wheel": {"path": wheel.path, "upload": outlook.must_upload},
        "waiting": waiting_json(outlook.games),
    }
    return dumps(content, indent=2, ensure_ascii=False)


def removal_text(removal: Removal) -> str:
    """Return a line for each wheel that goes or stays, then the plan of the jobs."""
    lines = [f"- remove {printable(path)}" for path in removal.wheels]
    lines += [f"! leave  {printable(path)}: a job of another deployment runs it" for path in removal.shared]
    return "\n".join([*lines, as_text(removal.plan)])


def step_line(step: Step | FileStep) -> str:
    """Return the line of a call that was made; "" for one that is only about to be."""
    match step:
        case FileStep(FileCall.UPLOAD, path):
            return f"+ upload {printable(path)}: done"
        case FileStep(_, path):
            return f"- remove {printable(path)}: done"
        case Step(Moment.AFTER, call, _, name, job_id):
            return f"{_MARKS[call]} {call.value:6} {printable(name)} (job {job_id}): done"
        case Step():
            return ""
