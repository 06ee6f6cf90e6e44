"""Who may do what with the jobs of the fake workspace."""

from __future__ import annotations

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InvalidParameterValue, NotFound, PermissionDenied
from databricks.sdk.service.iam import AccessControlRequest, ObjectPermissions, PermissionLevel
from databricks.sdk.service.jobs import JobAccessControlRequest, JobPermissionLevel

from tests.fakes.workspace.fake import FakeWorkspace
from tests.unit.fakes.settings_of_jobs import job

ANN = AccessControlRequest(user_name="ann@example.org", permission_level=PermissionLevel.IS_OWNER)
TEAM = AccessControlRequest(group_name="team", permission_level=PermissionLevel.CAN_VIEW)
ROBOT = AccessControlRequest(service_principal_name="robot", permission_level=PermissionLevel.CAN_MANAGE_RUN)
OWNED = ("ann@example.org", "IS_OWNER", False)
ADMINS = ("admins", "CAN_MANAGE", True)


@pytest.fixture
def job_id(workspace: FakeWorkspace) -> str:
    """A job without permissions but the owner's."""
    return str(workspace.jobs.make(job()).job_id)


def levels(permissions: ObjectPermissions) -> list[tuple[str, str, bool]]:
    """Who, which level, and whether it comes from above."""
    return [
        (
            entry.user_name or entry.group_name or entry.service_principal_name or "",
            each.permission_level.value if each.permission_level else "",
            bool(each.inherited),
        )
        for entry in permissions.access_control_list or []
        for each in entry.all_permissions or []
    ]


def test_a_new_job_has_its_owner_and_the_administrators(client: WorkspaceClient, job_id: str) -> None:
    permissions = client.permissions.get("jobs", job_id)
    assert (permissions.object_id, permissions.object_type) == (f"/jobs/{job_id}", "job")
    assert levels(permissions) == [OWNED, ADMINS]


def test_a_job_may_be_made_with_permissions(client: WorkspaceClient) -> None:
    team = JobAccessControlRequest(group_name="team", permission_level=JobPermissionLevel.CAN_VIEW)
    made = client.jobs.create(name="demux", access_control_list=[team])
    assert levels(client.permissions.get("jobs", str(made.job_id))) == [OWNED, ("team", "CAN_VIEW", False), ADMINS]
    settings = client.jobs.get(made.job_id or 0).settings
    assert settings is not None
    assert "access_control_list" not in settings.as_dict()


def test_an_update_adds_and_a_set_replaces(client: WorkspaceClient, job_id: str) -> None:
    client.permissions.update("jobs", job_id, access_control_list=[TEAM])
    both = client.permissions.update("jobs", job_id, access_control_list=[ROBOT])
    assert levels(both) == [OWNED, ("robot", "CAN_MANAGE_RUN", False), ("team", "CAN_VIEW", False), ADMINS]
    client.permissions.set("jobs", job_id, access_control_list=[ANN, TEAM])
    assert levels(client.permissions.get("jobs", job_id)) == [OWNED, ("team", "CAN_VIEW", False), ADMINS]


def test_a_set_without_an_owner_is_refused(client: WorkspaceClient, job_id: str) -> None:
    with pytest.raises(InvalidParameterValue, match="The job must have exactly one owner"):
        client.permissions.set("jobs", job_id, access_control_list=[TEAM])
    assert levels(client.permissions.get("jobs", job_id)) == [OWNED, ADMINS]


def test_a_group_owns_no_job(client: WorkspaceClient, job_id: str) -> None:
    group = AccessControlRequest(group_name="team", permission_level=PermissionLevel.IS_OWNER)
    with pytest.raises(InvalidParameterValue, match="Groups can not be owners"):
        client.permissions.set("jobs", job_id, access_control_list=[group])


def test_a_level_that_jobs_do_not_have_is_refused(client: WorkspaceClient, job_id: str) -> None:
    use = AccessControlRequest(group_name="team", permission_level=PermissionLevel.CAN_USE)
    with pytest.raises(InvalidParameterValue, match="Permission type CAN_USE is not supported on job"):
        client.permissions.update("jobs", job_id, access_control_list=[use])


def test_nobody_takes_the_job_of_another(workspace: FakeWorkspace, client: WorkspaceClient) -> None:
    theirs = str(workspace.jobs.make(job(), "bob@example.org").job_id)
    with pytest.raises(PermissionDenied, match="cannot change the owner"):
        client.permissions.set("jobs", theirs, access_control_list=[ANN])


def test_unknown_principals_and_jobs_are_missing(
    workspace: FakeWorkspace, client: WorkspaceClient, job_id: str
) -> None:
    workspace.users.known = frozenset({"team"})
    client.permissions.update("jobs", job_id, access_control_list=[TEAM])
    with pytest.raises(NotFound, match="Principal robot does not exist"):
        client.permissions.update("jobs", job_id, access_control_list=[ROBOT])
    with pytest.raises(NotFound, match="Job 5 does not exist"):
        client.permissions.get("jobs", "5")
