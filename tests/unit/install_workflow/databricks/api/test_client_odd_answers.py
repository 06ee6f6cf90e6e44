"""Answers that are not the API's own, to every kind of call that the installer makes: tried again, then told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

import pytest
import requests
from databricks.sdk.credentials_provider import credentials_strategy

from demux.core.errors import DemuxError, ErrorKind, WorkspaceRefused, WorkspaceUnavailable
from demux.core.http.client import Tries
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.workspace_files import files_in, read, remove, remove_folder, size, upload, write
from install_workflow.databricks.grants.apply import GrantsApi
from install_workflow.databricks.grants.diff import Grant, GrantAction, GrantChange
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.exchange import Answer
from tests.fakes.workspace.http.faults import ALWAYS, Fault, Way
from tests.fakes.workspace.http.server import serving
from tests.support.databricks.installers import emptied
from tests.support.databricks.jobs import ANALYSTS, DEPLOYMENT, job

ONE, TWO = job("001", {"cluster_001": ["chess"]}), job("002", {"cluster_002": ["go"]})
TRIES = Tries(retries=1, timeout_s=20)
TABLE = "main.silver.chess"
CHANGE = GrantChange(GrantAction.GRANT, Grant(TABLE, "analysts", "SELECT"), "")
JSON, HTML = {"Content-Type": "application/json"}, {"Content-Type": "text/html; charset=utf-8"}

ERRORS = {
    "a page without a title": Answer(503, b"<html><body><h1>Service Unavailable</h1></body></html>", HTML),
    "a page with a title": Answer(504, b"<html><head><title>504 Gateway Time-out</title></head></html>", HTML),
    "a page of a gateway": Answer(502, b"<html>\n<center>nginx</center>\n</html>", HTML),
    "text": Answer(500, b"upstream connect error", {"Content-Type": "text/plain"}),
    "no text at all": Answer(503, b"\xff\xfe\x00", {}),
    "nothing": Answer(503, b"", {}),
    "a list": Answer(503, b'["no"]', JSON),
    "an object of other types": Answer(503, b'{"message": {"a": 1}, "details": 5, "error_code": 7}', JSON),
    "too many, as a page": Answer(429, b"<html>slow down</html>", HTML),
    "a 404 of a gateway": Answer(404, b"<html><body>not here</body></html>", HTML),
    "an error that is cut": Answer(503, b'{"mess', {**JSON, "Content-Length": "100", "Connection": "close"}),
}
PAGE = {"a page for people": Answer(200, b"<html><title>Sign in</title></html>", HTML)}
CUT = {"a body that is cut": Answer(200, b'{"jo', {**JSON, "Content-Length": "100", "Connection": "close"})}
NO_OBJECT = {
    "nothing": Answer(200, b"", JSON),
    "half an object": Answer(200, b'{"jo', JSON),
    "a page that does not say so": Answer(200, b"<html></html>", {}),
    "a list": Answer(200, b"[]", JSON),
    "null": Answer(200, b"null", JSON),
    "a number": Answer(200, b"7", JSON),
    "bytes": Answer(200, b"\xff\xfe", JSON),
    "brackets without an end": Answer(200, b"[" * 100_000, JSON),
}

Call = Callable[[WorkspaceConnection], object]


VOLUME, TREE = "/Volumes/main/ops/wheels", "/Workspace/Shared/wheels"


def shaped(**names: object) -> dict[str, Answer]:
    """Objects that have something else under the name."""
    return {f"{name}={value}": Answer(200, json.dumps({name: value}).encode(), JSON) for name, value in names.items()}


# by method and path: what makes the call, and the successes that are none there
CALLS: Mapping[str, tuple[str, str, Call, Mapping[str, Answer]]] = {
    "list jobs": (
        "GET",
        "jobs/list$",
        lambda c: len(Workspace(c).find(DEPLOYMENT, set()).jobs) == 1,
        NO_OBJECT | shaped(jobs=[7]) | shaped(jobs={"a": 1}),
    ),
    "read a job": (
        "GET",
        "jobs/get$",
        lambda c: Workspace(c).find(DEPLOYMENT, set()).jobs[0].settings["name"] == ONE.settings["name"],
        NO_OBJECT | shaped(nothing=1) | shaped(settings=[]),
    ),
    "read permissions": (
        "GET",
        "permissions/jobs/",
        lambda c: len(Workspace(c).find(DEPLOYMENT, set()).jobs) == 1,
        NO_OBJECT | shaped(access_control_list=["x"]),
    ),
    "set permissions": ("PUT", "permissions/jobs/", lambda c: Workspace(c).permit(1001, [ANALYSTS]), NO_OBJECT),
    "create a job": (
        "POST",
        "jobs/create$",
        lambda c: Workspace(c).create(TWO.settings, ()) > 1000,
        NO_OBJECT | shaped(job_id=None) | shaped(job="x"),
    ),
    "change a job": ("POST", "jobs/reset$", lambda c: Workspace(c).reset(1001, ONE.settings), NO_OBJECT),
    "delete a job": ("POST", "jobs/delete$", lambda c: Workspace(c).delete(1001), NO_OBJECT),
    "read grants": (
        "GET",
        "unity-catalog/permissions",
        lambda c: GrantsApi(c).grants_on(TABLE) == frozenset(),
        NO_OBJECT | shaped(privilege_assignments=[{}]),
    ),
    "change grants": (
        "PATCH",
        "unity-catalog/permissions",
        lambda c: GrantsApi(c).change(TABLE, [CHANGE]),
        NO_OBJECT,
    ),
    "volume: upload": (
        "PUT",
        "fs/files",
        lambda c: upload(c, f"{VOLUME}/a.whl", b"wheel"),
        {"text": Answer(200, b"ok")},
    ),
    "volume: write once": (
        "PUT",
        "fs/files",
        lambda c: write(c, f"{VOLUME}/a.whl", b"1", "write", overwrite=False),
        {"text": Answer(200, b"ok")},
    ),
    "volume: make a folder": ("PUT", "fs/directories", lambda c: upload(c, f"{VOLUME}/a.whl", b"wheel"), {}),
    "volume: size": ("HEAD", "fs/files", lambda c: size(c, f"{VOLUME}/kept.json") == 4, {}),
    "volume: read": ("GET", "fs/files", lambda c: read(c, f"{VOLUME}/kept.json") == b"kept", CUT),
    "volume: list": (
        "GET",
        "fs/directories",
        lambda c: f"{VOLUME}/kept.json" in files_in(c, VOLUME),
        NO_OBJECT | shaped(contents=[7]) | shaped(contents=[{}]),
    ),
    "volume: remove": ("DELETE", "fs/files", lambda c: remove(c, f"{VOLUME}/kept.json"), {}),
    "volume: remove a folder": (
        "DELETE",
        "fs/directories",
        lambda c: remove_folder(c, f"{VOLUME}/empty"),
        {"text": Answer(200, b"ok")},
    ),
    "tree: upload": ("POST", "workspace/import", lambda c: upload(c, f"{TREE}/a.whl", b"wheel"), NO_OBJECT),
    "tree: make a folder": ("POST", "workspace/mkdirs", lambda c: upload(c, f"{TREE}/a.whl", b"wheel"), NO_OBJECT),
    "tree: size": (
        "GET",
        "workspace/get-status",
        lambda c: size(c, f"{TREE}/kept.json") == 4,
        NO_OBJECT | shaped(size="x") | shaped(size=[]),
    ),
    "tree: read": (
        "GET",
        "workspace/export",
        lambda c: read(c, f"{TREE}/kept.json") == b"kept",
        NO_OBJECT | shaped(content=7) | shaped(content="a") | shaped(contents="x"),
    ),
    "tree: list": (
        "GET",
        "workspace/list",
        lambda c: files_in(c, TREE) == (f"{TREE}/kept.json",),
        NO_OBJECT | shaped(objects=[{}]) | shaped(objects=7),
    ),
    "tree: remove": (
        "POST",
        "workspace/delete",
        lambda c: remove(c, f"{TREE}/kept.json"),
        NO_OBJECT,
    ),
}


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace()) as workspace:
        workspace.catalog.add("volume", "main.ops.wheels")
        workspace.catalog.add("table", TABLE)
        yield workspace


@pytest.fixture(scope="module")
def connection(fake: FakeWorkspace) -> WorkspaceConnection:
    login = {"host": fake.url, "token": fake.token, "auth_type": "pat"}
    return WorkspaceConnection(login, TRIES, sleep=lambda _: None)


def prepare(fake: FakeWorkspace, connection: WorkspaceConnection) -> None:
    """Give the workspace one job, a table without grants, and a file and an empty folder in each place."""
    emptied(fake)
    fake.tree.held.clear()
    fake.catalog.held["table", TABLE].grants.clear()
    fake.files.folders.add(f"{VOLUME}/empty")
    fake.files.held[f"{VOLUME}/kept.json"] = b"kept"
    fake.tree.held.update({TREE: None, f"{TREE}/kept.json": b"kept"})
    Workspace(connection).create(ONE.settings, ())


def odd_answers(kind: str) -> Mapping[str, Answer]:
    method, _, _, no_success = CALLS[kind]
    # without a body there is no telling a 404 from another
    errors = {name: each for name, each in ERRORS.items() if method != "HEAD" or each.status != 404}
    return errors | PAGE | {f"200: {name}": each for name, each in no_success.items()}


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_that_met_an_odd_answer_is_made_again(
    fake: FakeWorkspace, connection: WorkspaceConnection, kind: str
) -> None:
    method, path, call, _ = CALLS[kind]
    for name, answer in odd_answers(kind).items():
        prepare(fake, connection)
        fake.faults.plan(Fault(Way.OTHER, method=method, path=path, answer=answer))
        assert call(connection) is not False, name
        assert len(fake.faults.happened) == 1, name


@pytest.mark.parametrize("kind", CALLS)
def test_odd_answers_without_end_are_one_transient_error(
    fake: FakeWorkspace, connection: WorkspaceConnection, kind: str
) -> None:
    method, path, call, _ = CALLS[kind]
    prepare(fake, connection)
    for name, answer in odd_answers(kind).items():
        fake.faults.plan(Fault(Way.OTHER, method=method, path=path, answer=answer, times=ALWAYS))
        with pytest.raises(WorkspaceUnavailable) as failure:
            call(connection)
        assert failure.value.kind is ErrorKind.TRANSIENT, name
        assert len(fake.faults.happened) == TRIES.retries + 1, name
        assert "\n" not in str(failure.value), name


@pytest.mark.parametrize("body", [b"<html></html>", b"[]", b"", b"\xff"])
def test_a_host_that_says_nothing_usable_of_itself_is_used_all_the_same(body: bytes) -> None:
    with serving(FakeWorkspace(about=Answer(200, body, JSON))) as workspace:
        login = {"host": workspace.url, "token": workspace.token, "auth_type": "pat"}
        assert Workspace(WorkspaceConnection(login, TRIES)).find(DEPLOYMENT, set()).jobs == ()


def test_a_host_that_says_of_itself_what_the_client_breaks_on_is_an_error_of_ours() -> None:
    with serving(FakeWorkspace(about=Answer(200, b'{"oidc_endpoint": 5}', JSON))) as workspace:
        login = {"host": workspace.url, "token": workspace.token, "auth_type": "pat"}
        with pytest.raises(WorkspaceRefused, match="There is no usable login for a workspace: "):
            WorkspaceConnection(login, TRIES)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (requests.JSONDecodeError("Expecting value", "<html>", 0), WorkspaceUnavailable),
        (requests.ConnectionError("refused"), WorkspaceUnavailable),
        (KeyError("access_token"), WorkspaceUnavailable),
        (ValueError("the profile has expired"), WorkspaceRefused),
    ],
)
def test_a_token_that_cannot_be_had_is_an_error_of_ours(
    fake: FakeWorkspace, error: Exception, kind: type[DemuxError]
) -> None:
    def broken() -> dict[str, str]:
        raise error

    strategy = credentials_strategy("broken", ["host"])(lambda _: broken)
    connection = WorkspaceConnection({"host": fake.url, "credentials_strategy": strategy}, TRIES, sleep=lambda _: None)
    with pytest.raises(kind):
        Workspace(connection).find(DEPLOYMENT, set())
