"""Unity Catalog of the fake workspace: what there is, and who may do what with it."""

from __future__ import annotations

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import BadRequest, InvalidParameterValue, NotFound, PermissionDenied
from databricks.sdk.service.catalog import PermissionsChange, Privilege, VolumeType

from tests.fakes.workspace.fake import FakeWorkspace

CHESS, GO = "main.silver.chess", "main.silver.go"


@pytest.fixture(autouse=True)
def _tables(workspace: FakeWorkspace) -> None:
    for table in (CHESS, GO):
        workspace.catalog.add("table", table, table_type="MANAGED")


def grant(client: WorkspaceClient, kind: str, name: str, principal: str, *privileges: Privilege) -> None:
    client.grants.update(kind, name, changes=[PermissionsChange(add=list(privileges), principal=principal)])


def granted(client: WorkspaceClient, kind: str, name: str) -> dict[str, list[str]]:
    """The privileges of each principal."""
    found = client.grants.get(kind, name).privilege_assignments or []
    return {each.principal or "": [one.value for one in each.privileges or []] for each in found}


class TestGrants:
    def test_grants_are_added_and_taken_back(self, client: WorkspaceClient) -> None:
        assert granted(client, "table", CHESS) == {}
        grant(client, "table", CHESS, "team", Privilege.SELECT, Privilege.MODIFY)
        grant(client, "TABLE", CHESS, "bob", Privilege.SELECT)
        assert granted(client, "table", CHESS) == {"bob": ["SELECT"], "team": ["MODIFY", "SELECT"]}
        change = PermissionsChange(remove=[Privilege.MODIFY, Privilege.SELECT], principal="team")
        client.grants.update("table", CHESS, changes=[change])
        assert granted(client, "table", CHESS) == {"bob": ["SELECT"]}

    def test_all_privileges_take_all_others_with_them(self, client: WorkspaceClient) -> None:
        grant(client, "schema", "main.silver", "team", Privilege.SELECT, Privilege.USE_SCHEMA)
        change = PermissionsChange(remove=[Privilege.ALL_PRIVILEGES], principal="team")
        client.grants.update("schema", "main.silver", changes=[change])
        assert granted(client, "schema", "main.silver") == {}

    def test_one_principal_is_shown_alone_and_many_in_pages(
        self, workspace: FakeWorkspace, client: WorkspaceClient
    ) -> None:
        for number in range(60):
            grant(client, "table", CHESS, f"p{number:02}", Privilege.SELECT)
        alone = client.grants.get("table", CHESS, principal="p07").privilege_assignments or []
        assert [each.principal for each in alone] == ["p07"]
        first = client.grants.get("table", CHESS, max_results=0)
        second = client.grants.get("table", CHESS, max_results=0, page_token=first.next_page_token)
        assert [len(page.privilege_assignments or []) for page in (first, second)] == [50, 10]
        assert second.next_page_token is None

    def test_who_has_all_three_privileges_may_read_and_only_that_table(
        self, workspace: FakeWorkspace, client: WorkspaceClient
    ) -> None:
        may = workspace.catalog.may_select
        grant(client, "table", CHESS, "team", Privilege.SELECT)
        assert not may(CHESS, ["team"])
        grant(client, "schema", "main.silver", "team", Privilege.USE_SCHEMA)
        assert not may(CHESS, ["team"])
        grant(client, "catalog", "main", "team", Privilege.USE_CATALOG)
        assert may(CHESS, ["bob", "team"])
        assert not may(GO, ["bob", "team"])
        assert not may(CHESS, ["bob"])

    def test_a_privilege_above_counts_below_and_for_everybody(
        self, workspace: FakeWorkspace, client: WorkspaceClient
    ) -> None:
        privileges = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT)
        grant(client, "catalog", "main", "account users", *privileges)
        assert workspace.catalog.may_select(GO, ["anybody"])

    def test_what_cannot_be_granted_is_refused_and_nothing_is_changed(
        self, workspace: FakeWorkspace, client: WorkspaceClient
    ) -> None:
        workspace.users.known = frozenset({"team"})
        changes = [
            PermissionsChange(add=[Privilege.SELECT], principal="team"),
            PermissionsChange(add=[Privilege.SELECT], principal="nobody"),
        ]
        with pytest.raises(NotFound, match="Could not find principal with name nobody"):
            client.grants.update("table", CHESS, changes=changes)
        with pytest.raises(InvalidParameterValue, match="Privilege USE_SCHEMA is not applicable to this entity"):
            grant(client, "table", CHESS, "team", Privilege.USE_SCHEMA)
        assert granted(client, "table", CHESS) == {}

    def test_a_table_of_others_is_granted_by_them(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        theirs = workspace.catalog.add("table", "other.silver.chess", "bob@example.org")
        with pytest.raises(PermissionDenied, match=r"User does not have MANAGE on Table 'other\.silver\.chess'"):
            grant(client, "table", theirs.name, "team", Privilege.SELECT)
        theirs.grants["ann@example.org"] = {"MANAGE"}
        grant(client, "table", theirs.name, "team", Privilege.SELECT)
        assert theirs.grants["team"] == {"SELECT"}

    def test_what_is_not_there_is_missing(self, client: WorkspaceClient) -> None:
        with pytest.raises(NotFound, match=r"Table 'main\.silver\.none' does not exist"):
            client.grants.get("table", "main.silver.none")
        with pytest.raises(NotFound, match="Catalog 'none' does not exist"):
            grant(client, "catalog", "none", "team", Privilege.USE_CATALOG)


class TestTables:
    def test_a_table_is_described(self, client: WorkspaceClient) -> None:
        table = client.tables.get(CHESS)
        assert (table.catalog_name, table.schema_name, table.name) == ("main", "silver", "chess")
        assert table.owner == "ann@example.org"
        assert client.tables.exists(CHESS).table_exists is True
        assert client.tables.exists("main.silver.none").table_exists is False

    def test_the_tables_of_a_schema_are_listed_in_pages(
        self, workspace: FakeWorkspace, client: WorkspaceClient
    ) -> None:
        workspace.catalog.add("table", "main.silver2.go")
        for number in range(58):
            workspace.catalog.add("table", f"main.silver.g{number:02}")
        names = [each.name for each in client.tables.list("main", "silver")]
        assert len(names) == 60
        assert {"chess", "go", "g57"} <= set(names)
        assert workspace.counted()["GET /api/2.1/unity-catalog/tables"] == 2

    def test_a_dropped_table_is_gone(self, client: WorkspaceClient) -> None:
        client.tables.delete(CHESS)
        with pytest.raises(NotFound, match="does not exist"):
            client.tables.get(CHESS)


class TestPlaces:
    def test_schemas_and_volumes_are_made_once(self, client: WorkspaceClient) -> None:
        client.schemas.create("demux", "main")
        volume = client.volumes.create("main", "demux", "wheels", VolumeType.MANAGED)
        assert (volume.full_name, volume.owner) == ("main.demux.wheels", "ann@example.org")
        assert client.volumes.read("main.demux.wheels").volume_type is VolumeType.MANAGED
        assert client.schemas.get("main.demux").full_name == "main.demux"
        with pytest.raises(BadRequest, match=r"Schema 'main\.demux' already exists"):
            client.schemas.create("demux", "main")

    def test_nothing_is_made_in_what_is_not_there(self, client: WorkspaceClient) -> None:
        with pytest.raises(NotFound, match="Catalog 'none' does not exist"):
            client.schemas.create("demux", "none")
