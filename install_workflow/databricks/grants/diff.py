"""The difference between the grants that should be and those that are, as data: a reason for each. Pure.

Unity Catalog does not say who made a grant. What is ours is what our own record says (docs/decisions/0013).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, PlainSerializer

from demux.core.errors import DemuxError, PlanRefused
from demux.core.text import first_few
from install_workflow.databricks.grants.desired import Readers, TableLocation
from install_workflow.planning.plan import WaitingGame, digest

MAX_RETIRED_SHARE = 0.25

KINDS = ("catalog", "schema", "table")
# what we ever grant, on the securable of each kind
PRIVILEGES = {"catalog": "USE_CATALOG", "schema": "USE_SCHEMA", "table": "SELECT"}
# privileges to read rows, or to grant oneself that right
_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+){0,2}")
_READING = frozenset({"SELECT", "ALL_PRIVILEGES", "MANAGE"})


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One privilege of one principal, given directly; in order, a catalog comes before what is in it."""

    on: str
    principal: str
    privilege: str


# what is granted on each securable that was looked at; None = there is no such securable
Held = Mapping[str, Collection[Grant] | None]


def _require_ours(grants: frozenset[Grant]) -> frozenset[Grant]:
    # we never granted anything else, so nothing else is ours; a guess could revoke what others gave
    for grant in grants:
        if not grant.principal or not _NAME.fullmatch(grant.on) or grant.privilege != PRIVILEGES[kind_of(grant.on)]:
            raise ValueError(f"{grant.privilege} on {grant.on}")
    return grants


_Grants = Annotated[frozenset[Grant], AfterValidator(_require_ours), PlainSerializer(sorted)]


@dataclass(frozen=True, slots=True)
class GrantsRecord:
    """The record of our grants.

    Attributes:
        granted: what an apply has done.
        begun: what an apply was about to do.
    """

    granted: _Grants = frozenset()
    begun: _Grants = frozenset()


class GrantAction(Enum):
    """The action of a change; only the first two change the catalog."""

    GRANT = "grant"
    REVOKE = "revoke"
    CONFIRM = "confirm"
    FORGET = "forget"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class GrantChange:
    """The action on one grant of ours, and the reason."""

    action: GrantAction
    grant: Grant
    reason: str


@dataclass(frozen=True, slots=True)
class ForeignGrants:
    """Grants of others to a principal; they are left alone.

    Attributes:
        privileges: sorted.
        reads: what this alone lets them read, once they can enter; "" = nothing.
        wanted: whether the settings ask for one of these as well.
    """

    on: str
    principal: str
    privileges: tuple[str, ...]
    reads: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class GrantsPlan:
    """Everything that takes our grants to what they should be.

    Attributes:
        changes: one for each grant that is wanted and not another's, or recorded; by grant.
        foreign: grants of others on what was looked at; by name and principal.
        recorded_tables: how many tables there are on which we granted something.
        retired_tables: how many of them no game has any more.
    """

    changes: tuple[GrantChange, ...]
    foreign: tuple[ForeignGrants, ...]
    waiting: tuple[WaitingGame, ...]
    recorded_tables: int
    retired_tables: int

    @property
    def plan_id(self) -> str:
        """12 hex digits that depend on what would be done alone."""
        content = [[change.action.value, *astuple(change.grant)] for change in self.changes]
        return digest(content)[:12]

    @property
    def is_empty(self) -> bool:
        """Whether applying the plan would change nothing, our record included."""
        return all(change.action is GrantAction.KEEP for change in self.changes)

    @property
    def calls(self) -> dict[str, list[GrantChange]]:
        """The changes in the catalog, by securable: one call each, in the order in which they are made."""
        result: dict[str, list[GrantChange]] = defaultdict(list)
        for change in self.changes:
            if change.action in (GrantAction.GRANT, GrantAction.REVOKE):
                result[change.grant.on].append(change)
        return dict(result)


@dataclass(frozen=True, slots=True)
class GrantOutcome:
    """The result of applying a plan."""

    done: frozenset[Grant] = frozenset()
    failed: tuple[DemuxError, ...] = ()


def kind_of(name: str) -> str:
    """Return whether the full name is that of a catalog, schema or table, as the API has it."""
    return KINDS[name.count(".")]


def to_read(place: TableLocation, readers: Iterable[Readers], record: GrantsRecord) -> tuple[str, ...]:
    """Return the full names of all securables whose grants `compare` wants to know, sorted."""
    names = {each.table for each in readers if each.principals}
    return tuple(sorted({*names, *recorded_on(record), place.catalog, place.schema}))


def recorded_on(record: GrantsRecord) -> frozenset[str]:
    """Return the full names of all securables that we granted something on, and of what they are in."""
    names = {grant.on for grant in record.granted | record.begun}
    return frozenset(names.union(*map(_above, names)))


def readers_on(record: GrantsRecord) -> dict[str, frozenset[str]]:
    """Return the principals whom we granted each table."""
    found: dict[str, set[str]] = defaultdict(set)
    for grant in record.granted | record.begun:
        if kind_of(grant.on) == "table":
            found[grant.on].add(grant.principal)
    return {table: frozenset(principals) for table, principals in found.items()}


def plan_revoking(held: Held, record: GrantsRecord) -> GrantsPlan:
    """Return the plan that takes back all that is ours and nothing else, for a deployment that goes.

    Args:
        held: what is granted now on all that `recorded_on` names.
    """
    present = frozenset(grant for grants in held.values() for grant in grants or ())
    changes = tuple(
        GrantChange(GrantAction.REVOKE, grant, "the deployment goes")
        if grant in present
        else GrantChange(GrantAction.FORGET, grant, "it is no longer there")
        for grant in sorted(record.granted | record.begun)
    )
    return GrantsPlan(changes, (), (), 0, 0)


def compare(
    place: TableLocation,
    readers: Sequence[Readers],
    held: Held,
    record: GrantsRecord,
    waiting: Iterable[WaitingGame] = (),
) -> GrantsPlan:
    """Return the plan that takes the grants of ours to what the settings want; those of others stay.

    Args:
        held: what is granted now on all that `to_read` names.
    """
    present = frozenset(grant for grants in held.values() for grant in grants or ())
    wanted = _wanted(place, [each for each in readers if held.get(each.table) is not None])
    # who reads a table that is not there yet keeps the way to it, and does not get it yet
    later = _wanted(place, readers)
    ours = record.granted | record.begun
    due = sorted(ours | {grant for grant in wanted if grant not in present})
    tables = {each.table: each.game for each in readers}
    recorded = {grant.on for grant in ours & present if kind_of(grant.on) == "table"}
    return GrantsPlan(
        tuple(_change(grant, present, wanted, later, record, held, tables) for grant in due),
        tuple(_foreign(present - ours, wanted)),
        (*_waiting(place, readers, held), *waiting),
        len(recorded),
        len(recorded - tables.keys()),
    )


def begun(plan: GrantsPlan, record: GrantsRecord) -> GrantsRecord:
    """Return the record to be written before the first grant is made."""
    coming = {change.grant for change in plan.changes if change.action is GrantAction.GRANT}
    return GrantsRecord(record.granted, record.begun | coming - record.granted)


def record_after(plan: GrantsPlan, done: Collection[Grant]) -> GrantsRecord:
    """Return the record to be written in the end; what was refused is as if it had not been tried.

    Args:
        plan: all of it was tried.
    """
    stays = {GrantAction.KEEP: True, GrantAction.CONFIRM: True, GrantAction.FORGET: False}
    return GrantsRecord(
        frozenset(
            change.grant
            for change in plan.changes
            if stays.get(change.action, (change.action is GrantAction.GRANT) == (change.grant in done))
        )
    )


def require_modest(plan: GrantsPlan, max_retired_share: float = MAX_RETIRED_SHARE) -> None:
    """Let a plan pass under which enough tables keep their game: a workspace without its jobs has no games.

    Raises:
        PlanRefused: more than this share of the tables would lose its readers because no game has them.
    """
    if plan.retired_tables > max_retired_share * plan.recorded_tables:
        raise PlanRefused(
            f"The plan would take their readers from {plan.retired_tables} of {plan.recorded_tables} tables because "
            f"neither games.allow nor a job has their game, more than {max_retired_share:.0%} of them.",
            "See whether the jobs are there (`demux plan`); if that is meant, apply it with --force.",
            retired=plan.retired_tables,
            recorded=plan.recorded_tables,
        )


def _wanted(place: TableLocation, readers: Iterable[Readers]) -> dict[Grant, list[str]]:
    """Return the grants that should be, each with the games that it is for."""
    result: dict[Grant, list[str]] = defaultdict(list)
    for each in readers:
        for principal in each.principals:
            for name in (place.catalog, place.schema, each.table):
                result[Grant(name, principal, PRIVILEGES[kind_of(name)])].append(each.game)
    return dict(result)


def _change(
    grant: Grant,
    present: Collection[Grant],
    wanted: Mapping[Grant, Sequence[str]],
    later: Collection[Grant],
    record: GrantsRecord,
    held: Held,
    tables: Mapping[str, str],
) -> GrantChange:
    """Return the change of a grant that is ours, or that is wanted and not there."""
    unfinished = grant not in record.granted
    if grant not in present and grant in wanted:
        return GrantChange(GrantAction.GRANT, grant, _why_granted(grant, wanted[grant], record))
    if grant not in present:
        gone = f"{grant.on} is gone" if held.get(grant.on) is None else "it is no longer there"
        return GrantChange(GrantAction.FORGET, grant, "an apply did not finish" if unfinished else gone)
    if grant in later:
        action = GrantAction.CONFIRM if unfinished else GrantAction.KEEP
        return GrantChange(action, grant, "granted by an apply that did not finish" if unfinished else "as it is")
    return GrantChange(GrantAction.REVOKE, grant, _why_revoked(grant, tables))


def _why_granted(grant: Grant, games: Sequence[str], record: GrantsRecord) -> str:
    if grant in record.granted:
        return "drift: we granted it, and it is no longer there"
    if grant in record.begun:
        return "an apply did not finish"
    if kind_of(grant.on) == "table":
        return f"reads the game {games[0]}"
    return f"the way to the tables of {first_few(games)}"


def _why_revoked(grant: Grant, tables: Mapping[str, str]) -> str:
    if kind_of(grant.on) != "table":
        return "reads no game's table here any more"
    if grant.on not in tables:
        return "no game has this table any more"
    return f"the settings no longer name it for the game {tables[grant.on]}"


def _foreign(grants: Iterable[Grant], wanted: Collection[Grant]) -> Iterator[ForeignGrants]:
    by_principal: dict[tuple[str, str], list[Grant]] = defaultdict(list)
    for grant in sorted(grants):
        by_principal[grant.on, grant.principal].append(grant)
    for (name, principal), given in by_principal.items():
        privileges = tuple(grant.privilege for grant in given)
        extent = "this table" if kind_of(name) == "table" else "every game's table"
        reads = extent if _READING.intersection(privileges) else ""
        yield ForeignGrants(name, principal, privileges, reads, any(grant in wanted for grant in given))


def _waiting(place: TableLocation, readers: Iterable[Readers], held: Held) -> Iterator[WaitingGame]:
    for each in readers:
        if each.principals and held.get(each.table) is None:
            missing = next(name for name in (place.catalog, place.schema, each.table) if held.get(name) is None)
            yield WaitingGame(each.game, f"there is no {kind_of(missing)} {missing} yet")


def _above(name: str) -> Iterator[str]:
    """Yield the names of what the securable is in."""
    parts = name.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts)))
