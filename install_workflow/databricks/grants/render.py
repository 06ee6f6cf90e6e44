"""A plan of grants as text for people and as JSON for programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from demux.core.text import count_text, printable
from install_workflow.databricks.grants.diff import (
    ForeignGrants,
    GrantAction,
    GrantChange,
    GrantOutcome,
    GrantsPlan,
    kind_of,
)
from install_workflow.planning.plan import change_line, count_actions, sign_of, waiting_lines

_WIDTH = 7
_WAYS = {GrantAction.GRANT: "to", GrantAction.REVOKE: "from"}


def as_text(plan: GrantsPlan, everything: bool = False) -> str:
    """Return a line for each change, each grant of others that allows reading, and each waiting game; a summary.

    Args:
        everything: also list what stays as it is, and grants of others that only allow use.
    """
    lines = [
        change_line(each.action, grant_text(each), each.reason, _WIDTH)
        for each in plan.changes
        if each.action is not GrantAction.KEEP or everything
    ]
    lines += [_foreign_line(each) for each in plan.foreign if each.reads or each.wanted or everything]
    lines += waiting_lines(plan.waiting, _WIDTH)
    changes = count_actions((each.action for each in plan.changes), GrantAction)
    others = sum(len(each.privileges) for each in plan.foreign)
    waiting = count_text(len(plan.waiting), "game")
    return "\n".join([*lines, f"Grants {plan.plan_id}: {changes}; {others} of others left, {waiting} waiting."])


def content_of(plan: GrantsPlan, outcome: GrantOutcome | None = None) -> dict[str, Any]:
    """Return the plan as JSON data, and with an outcome what came of it.

    Its fields: plan_id, changes (action, kind, on, principal, privilege, reason), foreign (kind, on, principal,
    privileges, reads, wanted), waiting (game, reason); of the outcome: done (kind, on, principal, privilege), failed
    (condition, message, remedy).
    """
    content: dict[str, Any] = {
        "plan_id": plan.plan_id,
        "changes": [
            {"action": each.action.value, "kind": kind_of(each.grant.on), **asdict(each.grant), "reason": each.reason}
            for each in plan.changes
        ],
        "foreign": [{"kind": kind_of(each.on), **asdict(each)} for each in plan.foreign],
        "waiting": [asdict(each) for each in plan.waiting],
    }
    if outcome is not None:
        content["done"] = [{"kind": kind_of(grant.on), **asdict(grant)} for grant in sorted(outcome.done)]
        content["failed"] = [
            {"condition": each.condition, "message": each.message, "remedy": each.remedy} for each in outcome.failed
        ]
    return content


def call_lines(changes: Sequence[GrantChange]) -> Iterator[str]:
    """Yield a line for each change that a call made."""
    return (f"{sign_of(change.action)} {grant_text(change)}" for change in changes)


def grant_text(change: GrantChange) -> str:
    """Return the grant in words, such as `SELECT on table main.silver.chess to chess-team`."""
    grant = change.grant
    way = _WAYS.get(change.action, "of")
    return f"{grant.privilege} on {kind_of(grant.on)} {grant.on} {way} {printable(grant.principal)}"


def _foreign_line(foreign: ForeignGrants) -> str:
    what = f"{', '.join(foreign.privileges)} on {kind_of(foreign.on)} {foreign.on} of {printable(foreign.principal)}"
    reads = f", which reads {foreign.reads}" if foreign.reads else ""
    wanted = "; the settings want it too, and it stays another's" if foreign.wanted else ""
    return f"! leave   {printable(what)}{reads}: not granted by us{wanted}"
