"""A plan as text for people and as JSON data for programs. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from demux.core.text import printable
from install_workflow.planning.plan import Action, Plan

_SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.DELETE: "-", Action.KEEP: " "}


def as_text(plan: Plan, with_kept: bool = False) -> str:
    """Return one line for each change, the waiting games, and a summary; control characters are made visible.

    Args:
        plan: the plan.
        with_kept: also list what stays as it is.
    """
    lines = []
    for change in plan.changes:
        if change.action is Action.KEEP and not with_kept:
            continue
        task = change.task
        lines.append(
            f"{_SIGNS[change.action]} {change.action.value:6} {task.key} on {task.cluster} "
            f"(game {printable(task.game)}): {change.reason}"
        )
    lines += waiting_lines(plan)
    counted = Counter(change.action for change in plan.changes)
    summary = ", ".join(f"{counted[action]} to {action.value}" for action in Action)
    return "\n".join([*lines, f"Plan {plan.plan_id}: {summary}, {len(plan.waiting)} waiting."])


def waiting_lines(plan: Plan) -> list[str]:
    """Return a line for each game that waits, by name; control characters are made visible."""
    return [f"! waits  game {printable(waiting.game)}: {waiting.reason}" for waiting in plan.waiting]


def waiting_json(plan: Plan) -> list[dict[str, str]]:
    """Return game and reason of each game that waits, by name."""
    return [{"game": waiting.game, "reason": waiting.reason} for waiting in plan.waiting]


def content_of(plan: Plan) -> dict[str, Any]:
    """Return the plan as JSON data: plan_id, changes (action, game, task, cluster, reason), waiting."""
    changes = [
        {
            "action": change.action.value,
            "game": change.task.game,
            "task": change.task.key,
            "cluster": change.task.cluster,
            "reason": change.reason,
        }
        for change in plan.changes
    ]
    return {"plan_id": plan.plan_id, "changes": changes, "waiting": waiting_json(plan)}
