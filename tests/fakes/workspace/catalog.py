"""Unity Catalog: catalogs, schemas, tables and volumes, and who may do what with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.workspace.http.exchange import Answer, Refused, Request, answered, unknown_endpoint
from tests.fakes.workspace.users import Users

_PREFIX = "/api/2.1/unity-catalog/"
_KINDS = {"catalogs": "catalog", "schemas": "schema", "tables": "table", "volumes": "volume"}
_ALL, _MANAGE = "ALL_PRIVILEGES", "MANAGE"
# what may be granted where, as far as we have to do with it
_TABLE = frozenset({"SELECT", "MODIFY", "APPLY_TAG", _MANAGE, _ALL})
_VOLUME = frozenset({"READ_VOLUME", "WRITE_VOLUME", "APPLY_TAG", _MANAGE, _ALL})
_SCHEMA = _TABLE | _VOLUME | {"USE_SCHEMA", "CREATE_TABLE", "CREATE_VOLUME", "EXECUTE"}
_CATALOG = _SCHEMA | {"USE_CATALOG", "CREATE_SCHEMA", "BROWSE"}
_PRIVILEGES = {"catalog": _CATALOG, "schema": _SCHEMA, "table": _TABLE, "volume": _VOLUME}


@dataclass(slots=True)
class Securable:
    """A thing that rights are given on.

    Attributes:
        kind: catalog, schema, table or volume.
        name: its full name.
        owner: who may do everything with it.
        grants: the privileges given on it, by principal.
        properties: what else its description says.
    """

    kind: str
    name: str
    owner: str
    grants: dict[str, set[str]] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """The description of it that the server gives."""
        parts = self.name.split(".")
        names = dict(zip(("catalog_name", "schema_name"), parts[:-1], strict=False))
        return {"name": parts[-1], **names, "full_name": self.name, "owner": self.owner, **self.properties}

    def assigned(self, principal: str = "") -> list[dict[str, Any]]:
        """The grants as the server gives them, those of one principal or all."""
        return [
            {"principal": name, "privileges": sorted(privileges)}
            for name, privileges in sorted(self.grants.items())
            if principal in ("", name)
        ]


@dataclass(slots=True)
class Catalog:
    """Everything that is in the catalogs.

    Attributes:
        users: who asks, and who there is.
        held: the securables by kind and full name.
        page: how many entries an answer has at most, where it has pages.
    """

    users: Users
    held: dict[tuple[str, str], Securable] = field(default_factory=dict)
    page: int = 50

    def add(self, kind: str, name: str, owner: str = "", **properties: Any) -> Securable:
        """Return the securable, made with what it is in if it is not there; the owner is who asks, or named."""
        parent, _, _ = name.rpartition(".")
        if parent:
            self.add("schema" if "." in parent else "catalog", parent, owner)
        made = Securable(kind, name, owner or self.users.me, properties=dict(properties))
        return self.held.setdefault((kind, name), made)

    def may_select(self, table: str, principals: Collection[str]) -> bool:
        """Whether somebody who goes by these names may read the table; everybody is of `account users`."""
        who = {*principals, "account users"}
        catalog, schema, itself = self._with_parents("table", table)
        return itself.owner in who or (
            _granted("USE_CATALOG", who, [catalog])
            and _granted("USE_SCHEMA", who, [catalog, schema])
            and _granted("SELECT", who, [catalog, schema, itself])
        )

    def existing(self, kind: str, name: str) -> Securable:
        """The securable.

        Raises:
            Refused: 404, when there is none.
        """
        found = self.held.get((kind, name))
        if found is None:
            raise Refused(404, f"{kind.upper()}_DOES_NOT_EXIST", f"{kind.capitalize()} '{name}' does not exist.")
        return found

    def answer(self, request: Request) -> Answer:
        """Do what Unity Catalog does at this path."""
        match request.method, request.path.removeprefix(_PREFIX).split("/"):
            case "GET", ["permissions", kind, name]:
                return answered(self._permissions(self.existing(kind.lower(), name), request))
            case "PATCH", ["permissions", kind, name]:
                return answered(self._change(self.existing(kind.lower(), name), request.json))
            case "GET", ["tables", name, "exists"]:
                return answered({"table_exists": ("table", name) in self.held})
            case "GET", ["tables"]:
                return answered(self._tables(request))
            case "GET", [plural, name] if plural in _KINDS:
                return answered(self.existing(_KINDS[plural], name).described())
            case "POST", [plural] if plural in _KINDS:
                return answered(self._create(_KINDS[plural], request.json))
            case "DELETE", [plural, name] if plural in _KINDS:
                return self._delete(_KINDS[plural], name)
        raise unknown_endpoint(request)

    def _with_parents(self, kind: str, name: str) -> list[Securable]:
        """The securable at the end, before it what it is in, the catalog first."""
        parts = name.split(".")
        above = [
            self.held[which, ".".join(parts[: number + 1])]
            for number, which in enumerate(("catalog", "schema")[: len(parts) - 1])
        ]
        return [*above, self.existing(kind, name)]

    def _permissions(self, securable: Securable, request: Request) -> Mapping[str, Any]:
        if "max_results" not in request.query:
            assigned = securable.assigned(request.query.get("principal", ""))
            # nothing granted is an empty object, not an empty list
            return {"privilege_assignments": assigned} if assigned else {}
        return self._page("privilege_assignments", securable.assigned(request.query.get("principal", "")), request)

    def _page(self, name: str, entries: list[dict[str, Any]], request: Request) -> Mapping[str, Any]:
        start, wanted = request.number("page_token", 0), request.number("max_results", 0)
        if wanted < 0:
            raise Refused(400, "INVALID_PARAMETER_VALUE", "max_results must not be negative.")
        end = start + min(wanted or self.page, self.page)
        rest = {"next_page_token": str(end)} if end < len(entries) else {}
        return {name: entries[start:end], **rest}

    def _change(self, securable: Securable, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self._check_manages(securable)
        changes = list(self._checked(securable, body.get("changes", [])))
        for principal, add, remove in changes:
            old = securable.grants.pop(principal, set())
            new = (set() if _ALL in remove else old - remove) | add
            if new:
                securable.grants[principal] = new
        assigned = securable.assigned()
        return {"privilege_assignments": assigned} if assigned else {}

    def _checked(
        self, securable: Securable, changes: list[Mapping[str, Any]]
    ) -> Iterator[tuple[str, set[str], set[str]]]:
        for change in changes:
            principal = str(change.get("principal", ""))
            if self.users.known is not None and principal not in self.users.known | {self.users.me}:
                message = f"Could not find principal with name {principal}"
                raise Refused(404, "PRINCIPAL_DOES_NOT_EXIST", message)
            add, remove = set(change.get("add", [])), set(change.get("remove", []))
            wrong = sorted((add | remove) - _PRIVILEGES[securable.kind])
            if wrong:
                message = f"Privilege {wrong[0]} is not applicable to this entity [{securable.name}:{securable.kind}]."
                raise Refused(400, "INVALID_PARAMETER_VALUE", message)
            yield principal, add, remove

    def _check_manages(self, securable: Securable) -> None:
        line = self._with_parents(securable.kind, securable.name)
        if self.users.me in {each.owner for each in line} or _granted(_MANAGE, {self.users.me}, line):
            return
        message = f"User does not have MANAGE on {securable.kind.capitalize()} '{securable.name}'."
        raise Refused(403, "PERMISSION_DENIED", message)

    def _tables(self, request: Request) -> Mapping[str, Any]:
        schema = f"{request.query.get('catalog_name', '')}.{request.query.get('schema_name', '')}"
        self.existing("schema", schema)
        found = [each for each in self.held.values() if each.kind == "table" and each.name.startswith(f"{schema}.")]
        return self._page("tables", [each.described() for each in sorted(found, key=lambda one: one.name)], request)

    def _create(self, kind: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        above = [str(body[name]) for name in ("catalog_name", "schema_name") if name in body]
        if above:
            self._check_manages(self.existing("schema" if len(above) > 1 else "catalog", ".".join(above)))
        name = ".".join([*above, str(body.get("name", ""))])
        if (kind, name) in self.held:
            raise Refused(400, f"{kind.upper()}_ALREADY_EXISTS", f"{kind.capitalize()} '{name}' already exists")
        rest = {key: value for key, value in body.items() if key not in ("name", "catalog_name", "schema_name")}
        return self.add(kind, name, **rest).described()

    def _delete(self, kind: str, name: str) -> Answer:
        self._check_manages(self.existing(kind, name))
        if any(other.startswith(f"{name}.") for _, other in self.held):
            raise Refused(400, "INVALID_STATE", f"{kind.capitalize()} '{name}' is not empty.")
        del self.held[kind, name]
        return answered({})


def _granted(privilege: str, who: Collection[str], line: Collection[Securable]) -> bool:
    """Whether one of these has the privilege on one of the securables, or owns it."""
    return any(
        each.owner in who or any({privilege, _ALL} & each.grants.get(name, set()) for name in who) for each in line
    )
