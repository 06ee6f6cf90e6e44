"""A plan for the workspace as text for people, as JSON for programs, and as a file that is applied later. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from demux.core.control.record_format import mistake_in
from demux.core.errors import PlanRefused
from demux.core.settings.settings import Engine
from demux.core.text import count_text, first_few, printable
from install_workflow.databricks.diff.changes import JobAction, JobChange, WorkspacePlan
from install_workflow.databricks.diff.details import Detail, DifferenceKind
from install_workflow.databricks.jobs.job import ForeignJob
from install_workflow.planning.plan import change_line, count_actions

_MARKS = {
    DifferenceKind.ADDED: "+",
    DifferenceKind.REMOVED: "-",
    DifferenceKind.MOVED: "~",
    DifferenceKind.CHANGED: "~",
}
_LONGEST = 120

PLAN = TypeAdapter(WorkspacePlan)


def as_text(plan: WorkspacePlan, with_kept: bool = False) -> str:
    """Return a line for each job that changes, one below for each difference, the foreign jobs, and a summary.

    What differs in the same way in several tasks of a job, such as the wheel, has one line.
    """
    lines = []
    for change in plan.changes:
        if change.action is not JobAction.KEEP or with_kept:
            lines.append(_job_line(change))
            lines += [f"    {_MARKS[each.difference]} {_detail_text(each)}" for each in _group_details(change.details)]
    lines += [_foreign_line(job) for job in plan.foreign]
    done = [change.action for change in plan.changes]
    jobs = count_actions(done, (each for each in JobAction if each in done or each is not JobAction.REMOVE_DOUBLE))
    games = f"{plan.removed_games} of {plan.deployed_games} games removed"
    engine = f"; engine {printable(plan.engine)}" if plan.engine else ""
    return "\n".join([*lines, f"Plan {plan.plan_id}: jobs: {jobs}; {games}{engine}{_compute_text(plan)}."])


def with_names(plan: WorkspacePlan, names: Mapping[str, str]) -> WorkspacePlan:
    """Return the plan with the names of games in its details where a task has their keys; to be shown, not applied."""
    changes = (
        replace(each, details=tuple(_show_game_names(detail, names) for detail in each.details))
        for each in plan.changes
    )
    return replace(plan, changes=tuple(changes))


def content_of(plan: WorkspacePlan, *, with_jobs: bool = False) -> dict[str, Any]:
    """Return the plan as JSON data: plan_id, engine, compute, the fields of `WorkspacePlan`; its jobs if asked."""
    without = None if with_jobs else {"changes": {"__all__": {"job"}}}
    fields = PLAN.dump_python(plan, mode="json", exclude=without)
    first = {name: fields.pop(name) for name in ("state_id", "deployed_games", "removed_games")}
    return {"plan_id": plan.plan_id, **first, "engine": plan.engine, "compute": plan.compute, **fields}


def _compute_text(plan: WorkspacePlan) -> str:
    if plan.compute is None:
        return ""
    paid = f", {count_text(plan.paid_tasks, 'task')}, each paid for by itself" if plan.paid_tasks else ""
    return f"; compute {plan.compute}{paid}"


def _job_line(change: JobChange) -> str:
    number = "" if change.job_id is None else f" (job {change.job_id})"
    return change_line(change.action, f"{printable(change.name)}{number}", change.reason)


def _foreign_line(job: ForeignJob) -> str:
    whose = f"belongs to the deployment {job.deployment}" if job.deployment else "has not our tag"
    return (
        f"! leave  job {job.job_id} has the name {printable(job.name)} too, but {printable(whose)}: it is not touched"
    )


def _show_game_names(detail: Detail, names: Mapping[str, str]) -> Detail:
    def named(value: Any) -> Any:
        match value:
            case {"games": games}:
                return {**value, "games": [names.get(game, game) for game in games]}
            case str() if detail.field == "game":
                return names.get(value, value)
        return value

    if detail.before is not None and detail.after is not None:
        # named another way: the key is what is shown
        return detail
    return replace(detail, before=named(detail.before), after=named(detail.after))


def _group_details(details: Iterable[Detail]) -> list[Detail]:
    """Return the details, those of tasks that have the same field, values and reason put together."""
    groups: dict[str, list[Detail]] = {}
    for detail in details:
        alike = detail.field and detail.subject.startswith("task ") and detail.difference is not DifferenceKind.MOVED
        groups.setdefault(repr(replace(detail, subject="task")) if alike else repr(detail), []).append(detail)
    return [replace(group[0], subject=_subject([each.subject for each in group])) for group in groups.values()]


def _subject(subjects: list[str]) -> str:
    if len(subjects) == 1:
        return subjects[0]
    return f"tasks {first_few([subject.removeprefix('task ') for subject in subjects])}"


def _detail_text(detail: Detail) -> str:
    subject, field = printable(detail.subject), printable(detail.field)
    why = f": {printable(detail.reason)}" if detail.reason else ""
    match detail.difference:
        case DifferenceKind.MOVED:
            return f"{subject} moved from {_value(detail.before)} to {_value(detail.after)}{why}"
        case DifferenceKind.ADDED | DifferenceKind.REMOVED as kind if not field:
            return f"{subject}{_extent(detail)} {kind.value}{why}"
        case DifferenceKind.ADDED:
            return f"{subject}: {field} {_value(detail.after)} added{why}"
        case DifferenceKind.REMOVED:
            return f"{subject}: {field} {_value(detail.before)} removed{why}"
        case DifferenceKind.CHANGED if detail.before is None:
            return f"{subject}: {field} changed{why}"
        case DifferenceKind.CHANGED:
            return f"{subject}: {field} changed from {_value(detail.before)} to {_value(detail.after)}{why}"


def _extent(detail: Detail) -> str:
    """Return of which games a task is, by which engine if that is not a stream for each, and where it runs."""
    known = detail.after or detail.before or {}
    games = known.get("games", [])
    by = "" if known.get("engine") in {None, Engine.STREAM.value} else f" by the {printable(known['engine'])}"
    which = f"game {printable(games[0])}" if len(games) == 1 else f"{len(games)} games"
    which = f" ({which}{by})" if games else ""
    return f"{which} on {printable(known['cluster'])}" if "cluster" in known else which


def _value(value: Any) -> str:
    text = printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
    return (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…") or '""'


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
