"""Credentials that Unity Catalog gives out: asked for once, renewed in time, sent along to tasks, never in a text."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demux.core.errors import ServiceUnavailable, StorageFailed
from demux.core.settings.settings import Settings
from demux.core.storage.unity_catalog import (
    TemporaryCredentials,
    UnityCatalogPath,
    _CredentialCache,
    credentials_in,
)
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.faults import Fault, Way
from tests.fakes.workspace.http.server import serving

AWS = {"access_key_id": "id", "secret_access_key": "key", "session_token": "t"}


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace()) as said:
        # no profile of whoever runs the tests
        monkeypatch.setenv("HOME", str(tmp_path))
        for name, value in said.environ.items():
            monkeypatch.setenv(name, value)
        yield said


def url(tmp_path: Path) -> str:
    # what a process knows, it knows for all tests
    return f"s3://demux/{tmp_path.name}"


def test_they_are_asked_for_once_and_go_along_to_tasks_which_have_no_login(
    workspace: FakeWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path, given = UnityCatalogPath(url(tmp_path)), workspace.path_credentials.given
    assert path.provide()["token"] == "token-0"
    sent = pickle.dumps(path)
    assert (path.credentials().client_options()["aws_session_token"], len(given)) == ("token-0", 1)
    for name in workspace.environ:
        monkeypatch.delenv(name)
    assert pickle.loads(sent).provide()["token"] == "token-0"
    assert not any("token-0" in text or '"key"' in text for text in (caplog.text, repr(path.credentials())))


def test_a_path_without_permission_is_refused_with_the_permission_that_it_needs(workspace: FakeWorkspace) -> None:
    with pytest.raises(StorageFailed, match="EXTERNAL USE LOCATION on the external location of `root`"):
        UnityCatalogPath("s3://other/root").credentials()


def test_a_workspace_that_fails_or_is_not_there_may_be_asked_again(
    workspace: FakeWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for way in (Way.UNAVAILABLE, Way.THROTTLED, Way.RESET):
        workspace.faults.plan(Fault(way, path="temporary-path-credentials"))
        with pytest.raises(ServiceUnavailable, match="did not answer when it was asked for credentials of s3://demux/"):
            UnityCatalogPath(url(tmp_path)).credentials()
    monkeypatch.setenv("DATABRICKS_TOKEN", "other")
    with pytest.raises(StorageFailed, match="Invalid access token"):
        UnityCatalogPath(url(tmp_path)).credentials()


@pytest.mark.parametrize(
    ("said", "options"),
    [
        (
            {"aws_temp_credentials": AWS},
            {"aws_access_key_id": "id", "aws_secret_access_key": "key", "aws_session_token": "t"},
        ),
        ({"azure_user_delegation_sas": {"sas_token": "sig=1"}}, {"azure_storage_sas_key": "sig=1"}),
        ({"azure_aad": {"aad_token": "t"}}, {"azure_storage_token": "t"}),
    ],
)
def test_each_cloud_has_its_own_kind(said: dict[str, Any], options: dict[str, str]) -> None:
    found = credentials_in({**said, "expiration_time": 3_600_000}, "s3://b/r", 0.0)
    assert (found.client_options(), found.expires_s, found.renew_s) == (options, 3600.0, 3300.0)
    assert found.client_credential()["expires_at"].timestamp() == 3300.0
    assert len(found.client_credential()) == len(options) + 1
    # of such as last for a minute, half of it
    assert credentials_in({**said, "expiration_time": 60_000}, "s3://b/r", 0.0).renew_s == 30.0


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"gcp_oauth_token": {"oauth_token": "t"}, "expiration_time": 1}, "takes no OAuth token of Google"),
        ({"aws_temp_credentials": {"access_key_id": "id"}, "expiration_time": "soon"}, "no credentials that are known"),
        ({"aws_temp_credentials": AWS}, "no credentials that are known"),
        ({"r2_temp_credentials": AWS, "expiration_time": 1}, "no credentials that are known"),
        ([], "no credentials that are known"),
    ],
)
def test_an_answer_without_what_our_clients_take_is_refused(said: object, reason: str) -> None:
    with pytest.raises(StorageFailed, match=reason):
        credentials_in(said, "s3://b/r", 0.0)


def test_known_ones_are_used_while_they_last_where_the_workspace_does_not_answer() -> None:
    far = 4e9
    answers: list[TemporaryCredentials | None] = [TemporaryCredentials({"sas_token": "a"}, far, 0.0), None]

    def ask(of: str) -> TemporaryCredentials:
        found = answers.pop(0)
        if found is None:
            raise ServiceUnavailable("It does not answer.", "Again.")
        return found

    cache = _CredentialCache(ask)
    assert cache.of("s3://b/r").values == cache.of("s3://b/r").values == {"sas_token": "a"}
    answers += [TemporaryCredentials({"sas_token": "b"}, 0.0, 0.0), None]
    assert cache.of("s3://b/r").values == {"sas_token": "b"}
    with pytest.raises(ServiceUnavailable):
        cache.of("s3://b/r")


def test_keys_beside_it_are_a_mistake() -> None:
    keys = {"access_key": "secret:env/ID", "secret_key": "secret:env/KEY", "credentials": "unity-catalog"}
    with pytest.raises(ValueError, match=r"store has credentials of S3, and store\.credentials is unity-catalog"):
        Settings.model_validate({"store": keys})
