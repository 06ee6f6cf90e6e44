"""What a workspace says that is no success, and what we make of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from demux.core.errors import DemuxError, ErrorKind, SettingsInvalid, WorkspaceRefused, WorkspaceUnavailable
from demux.core.http.client import Tries
from demux.core.http.failures import HttpRejected
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.errors import Denied, Missing, refusal_error
from install_workflow.databricks.api.workspace_files import remove, upload
from install_workflow.databricks.apply.apply_jobs import apply
from install_workflow.databricks.apply.deployment_lock import LEASE, RENEW
from install_workflow.databricks.diff.changes import compare
from install_workflow.databricks.jobs.job import Job
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.faults import ALWAYS, Fault, Way
from tests.fakes.workspace.http.server import serving
from tests.support.databricks.jobs import ANALYSTS, DEPLOYMENT, changed, job

ONE = job("001", {"cluster_001": ["chess"]})
TRIES = Tries(retries=2, max_wait_s=30, timeout_s=20)


@pytest.fixture
def fake() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace()) as workspace:
        yield workspace


@pytest.fixture
def waits() -> list[float]:
    """The seconds that were waited between tries."""
    return []


@pytest.fixture
def connection(fake: FakeWorkspace, waits: list[float]) -> WorkspaceConnection:
    return connected(fake, waits)


def connected(fake: FakeWorkspace, waits: list[float], **login: str) -> WorkspaceConnection:
    return WorkspaceConnection(
        {"host": fake.url, "token": fake.token, "auth_type": "pat", **login}, TRIES, waits.append
    )


def install(connection: WorkspaceConnection, *jobs: Job) -> None:
    workspace = Workspace(connection)
    apply(workspace, compare(jobs, workspace.find(DEPLOYMENT, set()).jobs))


def test_a_wrong_token_is_refused_at_once_and_never_shown(fake: FakeWorkspace, waits: list[float]) -> None:
    with pytest.raises(WorkspaceRefused) as refused:
        Workspace(connected(fake, waits, token="dapi-hunter2")).find(DEPLOYMENT, set())
    assert refused.value.message == f"The workspace {fake.url} does not accept our login: Invalid access token."
    assert refused.value.remedy == "Set DATABRICKS_TOKEN to a valid token of this workspace, or log in again."
    assert "hunter2" not in str(refused.value)
    assert waits == []


def test_without_a_login_the_sentence_says_where_to_put_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", "/nowhere")
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    with pytest.raises(WorkspaceRefused, match="There is no usable login for a workspace") as refused:
        WorkspaceConnection({"auth_type": "pat"}, TRIES)
    assert "DATABRICKS_HOST" in refused.value.remedy


@pytest.mark.thorough
def test_a_workspace_that_is_not_reached_is_tried_again_and_transient(waits: list[float]) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{bound.getsockname()[1]}"
        connection = WorkspaceConnection({"host": host, "token": "x", "auth_type": "pat"}, TRIES, waits.append)
        with pytest.raises(WorkspaceUnavailable, match="was not reached") as unavailable:
            connection.ask("GET", "/api/2.2/jobs/list", "list its jobs")
    assert unavailable.value.kind is ErrorKind.TRANSIENT
    assert len(waits) == TRIES.retries


@pytest.mark.parametrize("way", [Way.THROTTLED, Way.UNAVAILABLE])
@pytest.mark.parametrize("asked_s", [0, 1, 90, 300])
def test_the_wait_is_as_long_as_the_server_asks_for(
    fake: FakeWorkspace, connection: WorkspaceConnection, waits: list[float], way: Way, asked_s: int
) -> None:
    fake.faults.plan(Fault(way, retry_after_s=asked_s))
    install(connection, ONE)
    assert waits == [asked_s]
    assert len(fake.jobs.held) == 1


@pytest.mark.parametrize(("asked_s", "waited_s"), [(3600, []), (200, [200])])
def test_a_wait_that_would_take_too_long_is_said_and_never_cut_short(
    fake: FakeWorkspace, connection: WorkspaceConnection, waits: list[float], asked_s: int, waited_s: list[float]
) -> None:
    fake.faults.plan(Fault(Way.THROTTLED, retry_after_s=asked_s, times=ALWAYS))
    with pytest.raises(WorkspaceUnavailable) as unavailable:
        install(connection, ONE)
    assert unavailable.value.remedy.startswith(f"Run the same command again after {asked_s:,} s;")
    assert waits == waited_s


def test_a_call_with_all_its_tries_ends_within_the_claim_of_an_installer() -> None:
    tries = Tries()
    assert tries.all_waits_s + (tries.retries + 1) * tries.timeout_s <= (LEASE - RENEW).total_seconds()


@pytest.mark.parametrize("way", [Way.INTERNAL_ERROR, Way.UNAVAILABLE, Way.THROTTLED, Way.RESET])
def test_a_failure_that_may_pass_is_tried_a_bounded_number_of_times(
    fake: FakeWorkspace, connection: WorkspaceConnection, way: Way
) -> None:
    fake.faults.plan(Fault(way, times=ALWAYS))
    with pytest.raises(WorkspaceUnavailable, match=f"The workspace {fake.url}, asked to list its jobs,"):
        install(connection, ONE)
    assert len(fake.faults.happened) == TRIES.retries + 1


def refusal(connection: WorkspaceConnection, wanted: Job) -> DemuxError:
    with pytest.raises(DemuxError) as refused:
        install(connection, wanted)
    assert refused.value.kind is ErrorKind.TERMINAL
    assert "\n" not in str(refused.value)
    return refused.value


def test_no_permission_to_create_is_one_sentence(fake: FakeWorkspace, connection: WorkspaceConnection) -> None:
    fake.users.creators = frozenset({"bob@example.org"})
    no = refusal(connection, ONE)
    assert isinstance(no, Denied)
    assert no.message == (
        f"At the workspace {fake.url}, we were not permitted to create the job Game_Protobufs_wrapper_prod_001: "
        "User ann@example.org is not authorized to create jobs."
    )
    assert fake.jobs.held == {}


def test_no_permission_on_run_as_is_one_sentence(fake: FakeWorkspace, connection: WorkspaceConnection) -> None:
    fake.users.run_as = frozenset()
    no = refusal(connection, changed(ONE, run_as={"service_principal_name": "0b1e"}))
    assert no.message == (
        f"At the workspace {fake.url}, we may not let a job run as another principal: "
        "User ann@example.org does not have permission to set run_as to 0b1e."
    )
    assert "databricks.run_as" in no.remedy


def test_an_unknown_node_type_is_a_mistake_in_the_settings(
    fake: FakeWorkspace, connection: WorkspaceConnection
) -> None:
    fake.jobs.compute.node_types = frozenset({"i3.xlarge"})
    no = refusal(connection, ONE)
    assert isinstance(no, SettingsInvalid)
    assert "Node type m6g.xlarge is not supported" in no.message
    assert "databricks.cluster.node_type" in no.remedy


@pytest.mark.parametrize(
    "wrong",
    [
        {"schedule": {"quartz_cron_expression": "hourly", "timezone_id": "UTC"}},
        {"tags": {**ONE.settings["tags"], "": "x"}},
    ],
)
def test_other_mistakes_come_with_the_servers_reason(connection: WorkspaceConnection, wrong: dict[str, Any]) -> None:
    assert "refused to create the job" in refusal(connection, changed(ONE, **wrong)).message


def test_an_unknown_principal_is_named(fake: FakeWorkspace, connection: WorkspaceConnection) -> None:
    install(connection, ONE)
    fake.users.known = frozenset()
    no = refusal(connection, replace(ONE, permissions=(ANALYSTS,)))
    assert isinstance(no, Missing)
    assert "Principal analysts does not exist" in no.message


def test_no_permission_to_change_a_job_is_not_mistaken_for_a_deleted_one(
    fake: FakeWorkspace, connection: WorkspaceConnection
) -> None:
    install(connection, ONE)
    fake.faults.plan(Fault(Way.DENIED, path="jobs/reset"))
    no = refusal(connection, changed(ONE, timeout_seconds=60))
    assert no.message.endswith("change the job Game_Protobufs_wrapper_prod_001: Access was withdrawn.")


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "Credential was not sent", WorkspaceRefused),
        (403, "The access token expired", WorkspaceRefused),
        (403, "No", Denied),
        (404, "No", Missing),
        (400, "Job 17 does not exist", Missing),
        (400, "The job 17 is odd", WorkspaceRefused),
        (409, "No", WorkspaceRefused),
    ],
)
def test_a_refusal_is_known_by_status_and_reason(status: int, message: str, kind: type[DemuxError]) -> None:
    assert type(refusal_error("https://x", "look", HttpRejected(status, message))) is kind


def test_a_run_as_beside_the_settings_counts_like_one_in_them(
    fake: FakeWorkspace, connection: WorkspaceConnection
) -> None:
    install(connection, changed(ONE, run_as={"user_name": "ann@example.org"}))
    del fake.jobs.held[1001].settings["run_as"]
    fake.calls.clear()
    install(connection, changed(ONE, run_as={"user_name": "ann@example.org"}))
    assert {call.method for call in fake.calls} == {"GET"}


@pytest.fixture(params=["/Volumes/main/demux/wheels/1/a.whl", "/Workspace/Shared/protobuf_demux/1/a.whl"])
def path(request: pytest.FixtureRequest, fake: FakeWorkspace) -> str:
    fake.catalog.add("volume", "main.demux.wheels")
    return str(request.param)


def stored(fake: FakeWorkspace, path: str) -> bytes | None:
    return fake.files.held.get(path) or fake.tree.held.get(path)


def test_a_file_is_uploaded_once(fake: FakeWorkspace, connection: WorkspaceConnection, path: str) -> None:
    assert upload(connection, path, b"wheel")
    assert not upload(connection, path, b"wheel")
    assert stored(fake, path) == b"wheel"


def test_half_a_file_is_uploaded_again(fake: FakeWorkspace, connection: WorkspaceConnection, path: str) -> None:
    upload(connection, path, b"whe")
    assert upload(connection, path, b"wheel")
    assert stored(fake, path) == b"wheel"


@pytest.mark.parametrize("way", [Way.INTERNAL_ERROR, Way.RESET])
def test_any_call_of_an_upload_may_fail_once(
    fake: FakeWorkspace, connection: WorkspaceConnection, path: str, way: Way
) -> None:
    for position in (1, 2, 3):
        fake.faults.plan(Fault(way, nth=position))
        assert upload(connection, path, bytes(position))
        assert len(fake.faults.happened) == 1
        assert stored(fake, path) == bytes(position)


def test_a_file_is_removed_once(fake: FakeWorkspace, connection: WorkspaceConnection, path: str) -> None:
    upload(connection, path, b"wheel")
    assert remove(connection, path)
    assert not remove(connection, path)
    assert stored(fake, path) is None


def test_a_volume_that_is_not_there_is_said(connection: WorkspaceConnection) -> None:
    with pytest.raises(Missing, match=r"Volume 'main\.nowhere\.wheels' does not exist"):
        upload(connection, "/Volumes/main/nowhere/wheels/a.whl", b"wheel")
