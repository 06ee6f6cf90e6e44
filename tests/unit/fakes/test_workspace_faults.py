"""Calls to the fake workspace that fail as planned, and who is let in at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InternalError, NotFound, PermissionDenied

from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.client import HastyClock, client_of
from tests.fakes.workspace.http.faults import ALWAYS, Fault, Way, When
from tests.fakes.workspace.http.server import serving

CREATE = "POST /api/2.2/jobs/create"


def patient(workspace: FakeWorkspace, *faults: Fault) -> WorkspaceClient:
    """A client that waits a moment for answers, and the faults that it meets."""
    client = client_of(workspace, http_timeout_s=0.2)
    workspace.faults.plan(*faults)
    return client


class TestFaults:
    @pytest.mark.parametrize("way", [Way.THROTTLED, Way.UNAVAILABLE, Way.RESET, Way.SILENT])
    def test_a_call_that_failed_before_its_effect_is_repeated_by_the_client(
        self, workspace: FakeWorkspace, way: Way
    ) -> None:
        client = patient(workspace, Fault(way))
        made = client.jobs.create(name="demux")
        assert list(workspace.jobs.held) == [made.job_id]
        assert workspace.counted() == {CREATE: 2}
        assert [(fault.way, call.path) for fault, call in workspace.faults.happened] == [(way, "/api/2.2/jobs/create")]

    @pytest.mark.parametrize("way", [Way.RESET, Way.SILENT, Way.THROTTLED])
    def test_a_call_whose_answer_was_lost_is_done_twice(self, workspace: FakeWorkspace, way: Way) -> None:
        client = patient(workspace, Fault(way, when=When.AFTER))
        made = client.jobs.create(name="demux")
        assert list(workspace.jobs.held) == [1001, 1002]
        assert made.job_id == 1002

    @pytest.mark.parametrize(("when", "jobs"), [(When.BEFORE, 0), (When.AFTER, 1)])
    def test_an_internal_error_is_not_repeated(self, workspace: FakeWorkspace, when: When, jobs: int) -> None:
        client = patient(workspace, Fault(Way.INTERNAL_ERROR, when=when))
        with pytest.raises(InternalError, match="There was an internal error"):
            client.jobs.create(name="demux")
        assert len(workspace.jobs.held) == jobs

    def test_a_reset_connection_is_told_as_one(self, workspace: FakeWorkspace) -> None:
        client = client_of(workspace, retry_timeout_s=1)
        workspace.faults.plan(Fault(Way.RESET))
        with pytest.raises(TimeoutError) as raised:
            client.jobs.get(1)
        assert isinstance(raised.value.__cause__, requests.ConnectionError)
        assert "Connection reset by peer" in str(raised.value.__cause__)

    def test_throttling_says_how_long_to_wait(self, workspace: FakeWorkspace) -> None:
        clock = HastyClock()
        client = client_of(workspace, clock=clock)
        workspace.faults.plan(Fault(Way.THROTTLED, retry_after_s=30))
        assert list(client.jobs.list()) == []
        assert [int(slept) for slept in clock.slept] == [30]

    def test_only_the_nth_call_that_matches_fails(self, workspace: FakeWorkspace) -> None:
        client = patient(workspace, Fault(Way.DENIED, nth=2, method="POST", path="jobs/create$"))
        client.jobs.create(name="a")
        list(client.jobs.list())
        with pytest.raises(PermissionDenied, match="Access was withdrawn"):
            client.jobs.create(name="b")
        client.jobs.create(name="c")
        assert [job.settings["name"] for job in workspace.jobs.held.values()] == ["a", "c"]

    def test_a_fault_may_go_on_for_ever_or_until_it_is_cleared(self, workspace: FakeWorkspace) -> None:
        client = patient(workspace, Fault(Way.DENIED, nth=2, times=ALWAYS))
        client.jobs.create(name="a")
        for _ in range(3):
            with pytest.raises(PermissionDenied):
                list(client.jobs.list())
        workspace.faults.clear()
        assert len(list(client.jobs.list())) == 1

    def test_two_faults_may_come_at_once(self, workspace: FakeWorkspace) -> None:
        client = patient(workspace, Fault(Way.INTERNAL_ERROR, nth=1), Fault(Way.DENIED, nth=2))
        with pytest.raises(InternalError):
            list(client.jobs.list())
        with pytest.raises(PermissionDenied):
            list(client.jobs.list())

    def test_a_call_without_an_answer_holds_up_no_other(self) -> None:
        workspace = FakeWorkspace()
        workspace.faults.plan(Fault(Way.SILENT, when=When.AFTER, path="create"))
        with ThreadPoolExecutor() as pool:
            with serving(workspace):
                header = {"Authorization": f"Bearer {workspace.token}"}
                address = f"{workspace.url}/api/2.2/jobs/create"
                held = pool.submit(requests.post, address, json={"name": "a"}, headers=header, timeout=60)
                assert workspace.faults.hit.wait(10)
                assert [job.job_id for job in client_of(workspace).jobs.list()] == [1001]
                assert not held.done()
            assert isinstance(held.exception(), requests.ConnectionError)


class TestLettingIn:
    def test_every_call_that_was_let_in_is_kept(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        client.jobs.create(name="demux", tags={"a": "b"})
        list(client.jobs.list(name="x"))
        calls = [(call.method, call.path, dict(call.query), call.json) for call in workspace.calls]
        assert calls == [
            ("POST", "/api/2.2/jobs/create", {}, {"name": "demux", "tags": {"a": "b"}}),
            ("GET", "/api/2.2/jobs/list", {"name": "x"}, {}),
        ]

    def test_a_wrong_token_is_refused_and_not_kept(self, workspace: FakeWorkspace) -> None:
        wrong = client_of(workspace)
        workspace.token = "another"
        with pytest.raises(PermissionDenied, match="Invalid access token"):
            list(wrong.jobs.list())
        assert workspace.calls == []

    def test_no_token_is_refused_too(self, workspace: FakeWorkspace) -> None:
        answer = requests.get(f"{workspace.url}/api/2.2/jobs/list", timeout=10)
        assert (answer.status_code, answer.json()["error_code"]) == (401, "UNAUTHENTICATED")

    def test_a_path_that_is_not_there_is_said(self, client: WorkspaceClient) -> None:
        with pytest.raises(NotFound, match=r"No API found for 'GET /api/2\.0/none'"):
            client.api_client.do("GET", "/api/2.0/none")
        with pytest.raises(NotFound, match=r"No API found for 'GET /api/2\.1/jobs/list'"):
            client.api_client.do("GET", "/api/2.1/jobs/list")

    def test_the_user_is_known_by_name(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        workspace.users.me = "bob@example.org"
        assert client.current_user.me().user_name == "bob@example.org"
