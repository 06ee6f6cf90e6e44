"""The grants in Unity Catalog: what is there, and the call that changes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from demux.core.errors import SettingsInvalid
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.errors import Denied, Missing
from install_workflow.databricks.grants.desired import known_as
from install_workflow.databricks.grants.diff import KINDS, Grant, GrantAction, GrantChange, kind_of

_CATALOGS = "/api/2.1/unity-catalog/catalogs"
_PERMISSIONS = "/api/2.1/unity-catalog/permissions"
_AT_ONCE = 8


class GrantsApi:
    """The grants in the catalogs that a workspace sees; all raise as `WorkspaceConnection.tried`.

    Attributes:
        connection: the workspace and our login.
    """

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
                f"The workspace {self.connection.host} has no catalog {name}, so no table could be registered.",
                "Create it, or correct databricks.catalog; if it is there, have USE CATALOG on it granted.",
                catalog=name,
            ) from None

    def held(self, names: Iterable[str]) -> dict[str, frozenset[Grant] | None]:
        """Return what is granted directly on each of these; None where there is no such thing. Changes nothing.

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
        """Return what is granted directly on one securable; None when there is none. Changes nothing."""
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
