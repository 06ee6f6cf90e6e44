"""Takes the grants to what a plan says: one call for each catalog, schema or table, between two of our record."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import TypeAdapter

from demux.core.control.record_format import RecordFormat
from demux.core.errors import ConcurrentChange, DemuxError, PlanRefused, SettingsInvalid, WorkspaceRefused
from demux.core.settings.databricks.deployment import DatabricksSettings
from demux.core.settings.settings import Settings
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.errors import Denied, Missing
from install_workflow.databricks.api.versioned_file import FileVersion, RecordFiles
from install_workflow.databricks.grants.desired import (
    GrantedGames,
    games_of,
    known_as,
    place_of,
    readers_of,
    waiting_of,
)
from install_workflow.databricks.grants.diff import (
    KINDS,
    Grant,
    GrantAction,
    GrantChange,
    GrantOutcome,
    GrantsPlan,
    GrantsRecord,
    begun,
    compare,
    kind_of,
    plan_revoking,
    readers_on,
    record_after,
    recorded_on,
    to_read,
)
from install_workflow.databricks.jobs.jobs_api import Workspace

_CATALOGS = "/api/2.1/unity-catalog/catalogs"
_PERMISSIONS = "/api/2.1/unity-catalog/permissions"
_AT_ONCE = 8


class GrantsApi:
    """The grants in the catalogs that a workspace sees; all raise as `WorkspaceConnection.tried`."""

    def __init__(self, connection: WorkspaceConnection) -> None:
        self.connection = connection

    def require(self, name: str) -> None:
        """Let a catalog pass that is there, or that we cannot ask about. Changes nothing.

        Raises:
            SettingsInvalid: the workspace shows no catalog of this name.
        """
        try:
            self.connection.ask("GET", f"{_CATALOGS}/{name}", f"look at the catalog {name}")
        except Denied:
            # whom the jobs run as may see it
            return
        except Missing:
            raise SettingsInvalid(
                f"The workspace {self.connection.host} has no catalog {name}, so no table could be made.",
                "Create it, or correct tables.catalog; if it is there, have USE CATALOG on it granted.",
                catalog=name,
            ) from None

    def held(self, names: Iterable[str]) -> dict[str, frozenset[Grant] | None]:
        """Return the direct grants on each of these; None where there is no such thing. Changes nothing.

        One call or more for each, several at once; none for what is in something that is not there.

        Args:
            names: full names; what a securable is in must be among them.
        """
        names = tuple(names)
        result: dict[str, frozenset[Grant] | None] = dict.fromkeys(names)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for kind in KINDS:
                due = [name for name in names if kind_of(name) == kind and _parent_is_there(name, result)]
                result.update(zip(due, pool.map(self.grants_on, due), strict=True))
        return result

    def grants_on(self, name: str) -> frozenset[Grant] | None:
        """Return the direct grants on one securable; None when there is none. Changes nothing."""
        path, doing = _path(name), f"read the grants on {name}"
        found: set[Grant] = set()
        token = None
        while token != "":
            # 0: pages as large as the server likes
            query = {"max_results": 0, **({"page_token": token} if token else {})}
            try:
                grants, token = self.connection.read(path, doing, partial(_grants_of, name), query)
            except Missing:
                return None
            found |= grants
        return frozenset(found)

    def change(self, name: str, changes: Iterable[GrantChange]) -> None:
        """Grant and revoke on one securable, all in one call, or nothing; safe to call twice."""
        by_principal: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"add": [], "remove": []})
        for change in changes:
            side = "add" if change.action is GrantAction.GRANT else "remove"
            by_principal[change.grant.principal][side].append(change.grant.privilege)
        body = {"changes": [{"principal": principal, **sides} for principal, sides in by_principal.items()]}
        self.connection.ask("PATCH", _path(name), f"change the grants on {name}", body=body)


def _grants_of(name: str, page: Mapping[str, Any]) -> tuple[frozenset[Grant], str]:
    """Return the grants on a page, and the token of the next one."""
    assigned = [(known_as(str(each["principal"])), each) for each in page.get("privilege_assignments", [])]
    found = frozenset(Grant(name, who, str(one)) for who, each in assigned for one in each.get("privileges", []))
    return found, str(page.get("next_page_token") or "")


def _path(name: str) -> str:
    return f"{_PERMISSIONS}/{kind_of(name)}/{name}"


def _parent_is_there(name: str, held: dict[str, frozenset[Grant] | None]) -> bool:
    parent = name.rpartition(".")[0]
    return not parent or held[parent] is not None


_PRINCIPAL = re.compile(r"\bprincipal\b", re.IGNORECASE)
# an answer about the names in the call, not about us
_ABOUT_NAMES = (400, 404)

_RECORD = TypeAdapter(GrantsRecord)

Report = Callable[[str, Sequence[GrantChange]], None]


@dataclass(frozen=True, slots=True)
class GrantsPreview:
    """A plan, and what it was made from."""

    plan: GrantsPlan
    kept: FileVersion[GrantsRecord]
    files: RecordFiles[GrantsRecord]
    catalog: GrantsApi


def grants_format(deployment: str) -> RecordFormat[GrantsRecord]:
    """Return how the record of a deployment's grants is written."""
    return RecordFormat(deployment, _RECORD, GrantsRecord(), "the grants", _unusable)


def grants_files(connection: WorkspaceConnection, wheel_path: str, deployment: str) -> RecordFiles[GrantsRecord]:
    """Return the versions of a deployment's record of grants."""
    # no deployment can have this name, and its wheels a folder of it
    return RecordFiles(connection, f"{wheel_path}/grants.{deployment}", grants_format(deployment))


def preview_grants(
    connection: WorkspaceConnection, settings: Settings, games: GrantedGames | None = None, known: Iterable[str] = ()
) -> GrantsPreview:
    """Return the plan of the grants; changes nothing.

    A call or more for each game with readers; without `games` also for each job of ours and each 100 jobs of the
    workspace.

    Args:
        games: the games that there will be; None for those of `games.allow` and of the jobs.
        known: names of games, for those that a task has by their key.

    Raises:
        SettingsInvalid: as `place_of`.
        PlanRefused: our record cannot be used.
        DemuxError: as `WorkspaceConnection.tried`.
    """
    place, catalog = place_of(settings), GrantsApi(connection)
    files = grants_files(connection, settings.databricks.wheel_path or "", place.deployment)
    kept = files.read()
    if games is None:
        jobs = Workspace(connection).find(place.deployment, ()).jobs
        games = games_of(jobs, settings.games.allow, {*settings.grants.games, *known})
    readers = readers_of(place, games, settings.grants, readers_on(kept.record))
    held = catalog.held(to_read(place, readers, kept.record))
    plan = compare(place, readers, held, kept.record, waiting_of(games, settings.grants))
    return GrantsPreview(plan, kept, files, catalog)


def preview_beside_jobs(
    connection: WorkspaceConnection, settings: Settings, games: Iterable[str]
) -> GrantsPreview | None:
    """Return the plan of the grants beside the jobs of these games; None where no grants are wanted, and never were.

    Where the section `grants` is empty, what we granted before is taken back; without a catalog nothing is looked at.

    Raises:
        SettingsInvalid, PlanRefused, DemuxError: as `preview_grants`.
    """
    databricks, grants = settings.databricks, settings.grants
    if settings.tables.catalog is None:
        return None
    files = grants_files(connection, databricks.wheel_path or "", databricks.name or "")
    if not grants.games and not grants.patterns and not files.read().version:
        return None
    return preview_grants(connection, settings, GrantedGames(tuple(sorted({*settings.games.allow, *games}))))


def preview_revoking(connection: WorkspaceConnection, databricks: DatabricksSettings) -> GrantsPreview:
    """Return the plan that revokes all our grants; changes nothing.

    Raises:
        PlanRefused: our record cannot be used.
        DemuxError: as `WorkspaceConnection.tried`.
    """
    catalog = GrantsApi(connection)
    files = grants_files(connection, databricks.wheel_path or "", databricks.name or "")
    kept = files.read()
    return GrantsPreview(plan_revoking(catalog.held(recorded_on(kept.record)), kept.record), kept, files, catalog)


def apply(
    preview: GrantsPreview, report: Report = lambda _, __: None, before: Callable[[], None] = lambda: None
) -> GrantOutcome:
    """Apply the plan and return the result; what the workspace refuses stops nothing else.

    A grant is in our record before it is made, so that one whose apply died is still ours. Looked at again and applied
    again, the end is the same.

    Args:
        report: called after each call, with the securable and what was done.
        before: called before each call; what it raises ends all.

    Raises:
        ConcurrentChange: another command changed the grants at the same time.
        WorkspaceUnavailable: no usable answer; what was done stays.
        WorkspaceRefused: our login does not work any more.
    """
    plan, kept = preview.plan, preview.kept
    if plan.is_empty:
        return GrantOutcome()
    calls = _GrantCalls(preview.catalog, report, before)
    if plan.calls:
        kept = preview.files.write(kept, begun(plan, kept.record))
        for name, changes in plan.calls.items():
            calls.make(name, changes)
    preview.files.write(kept, record_after(plan, calls.done))
    return GrantOutcome(frozenset(calls.done), (*calls.unknown_error(), *calls.failed))


class _GrantCalls:
    """The calls of one apply."""

    def __init__(self, catalog: GrantsApi, report: Report, before: Callable[[], None]) -> None:
        self.done: set[Grant] = set()
        self.failed: list[DemuxError] = []
        self._unknown: set[str] = set()
        self._catalog = catalog
        self._report = report
        self._before = before

    def make(self, name: str, changes: Sequence[GrantChange]) -> None:
        """Change the grants on one securable, without the principals that the workspace does not know."""
        changes = [change for change in changes if change.grant.principal not in self._unknown]
        if not changes:
            return
        self._before()
        try:
            self._catalog.change(name, changes)
        except Denied as denied:
            self.failed.append(denied)
        except WorkspaceRefused as refused:
            if refused.fields.get("status") not in _ABOUT_NAMES:
                raise
            self._one_by_one(name, changes, refused)
        else:
            self.done |= {change.grant for change in changes}
            self._report(name, changes)

    def unknown_error(self) -> tuple[DemuxError, ...]:
        """Return the sentence about all principals that the workspace does not know."""
        if not self._unknown:
            return ()
        host, names = self._catalog.connection.host, sorted(self._unknown)
        error = WorkspaceRefused(
            f"The workspace {host} does not know {', '.join(names)}: their grants were left out.",
            "Correct the section grants of the settings, or have them added. Unity Catalog knows groups of the account "
            "(not the workspace's own), users by e-mail address, and service principals by application id.",
            principals=tuple(names),
        )
        return (error,)

    def _one_by_one(self, name: str, changes: Sequence[GrantChange], refused: WorkspaceRefused) -> None:
        """Try each principal alone: one that is wrong refuses the whole call."""
        principals = sorted({change.grant.principal for change in changes})
        if self._catalog.grants_on(name) is None:
            self.failed.append(_vanished(name))
        elif len(principals) > 1:
            for principal in principals:
                self.make(name, [change for change in changes if change.grant.principal == principal])
        elif _PRINCIPAL.search(str(refused.fields.get("reason"))):
            self._unknown.update(principals)
        else:
            self.failed.append(refused)


def _vanished(name: str) -> ConcurrentChange:
    return ConcurrentChange(
        f"The {kind_of(name)} {name} was dropped since the plan was made.", "Run the same command again.", name=name
    )


def _unusable(path: str, reason: str) -> PlanRefused:
    return PlanRefused(
        f"The record of what was granted, {path}, cannot be used ({reason}).",
        "Put an earlier one in its place; or remove all of that folder, and what was granted stays as if it were "
        "another's.",
        path=path,
    )
