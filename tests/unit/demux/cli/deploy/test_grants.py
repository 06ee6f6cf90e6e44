"""`demux grants …` against a workspace over HTTP: what is printed, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from demux.cli.commands.deploy import grants
from demux.core.errors import ExitCode, PlanRefused, SettingsInvalid, WorkspaceRefused
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving

SETTINGS = """
root: s3://lake/demux
games: {allow: [chess, go]}
databricks:
  name: prod
  cluster: {node_type: i3.xlarge}
  wheel_path: /Volumes/main/ops/wheels
tables: {catalog: main}
grants:
  games: {chess: [chess-team], go: [go-team]}
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkspace]:
    monkeypatch.chdir(tmp_path)
    Path("demux.yml").write_text(SETTINGS, encoding="utf-8")
    with serving(FakeWorkspace()) as workspace:
        workspace.catalog.add("table", "main.silver.chess")
        workspace.catalog.add("volume", "main.ops.wheels")
        for name, value in {**workspace.environ, "DATABRICKS_AUTH_TYPE": "pat"}.items():
            monkeypatch.setenv(name, value)
        yield workspace


def run(*words: str) -> Result:
    return CliRunner().invoke(grants, words)


def test_a_plan_shows_what_would_be_done_and_does_nothing(fake: FakeWorkspace) -> None:
    result = run("plan")
    assert result.exit_code == ExitCode.OK, result.output
    assert result.stdout.splitlines()[:-1] == [
        "+ grant   USE_CATALOG on catalog main to chess-team: the way to the tables of chess",
        "+ grant   USE_SCHEMA on schema main.silver to chess-team: the way to the tables of chess",
        "+ grant   SELECT on table main.silver.chess to chess-team: reads the game chess",
        "! waits   game go: there is no table main.silver.go yet",
    ]
    assert {call.method for call in fake.calls} == {"GET"}
    assert fake.files.held == {}


def test_an_apply_prints_each_grant_and_a_second_one_none(fake: FakeWorkspace) -> None:
    lines = run("apply").stdout.splitlines()
    assert lines[-4:] == [
        "+ USE_CATALOG on catalog main to chess-team: done",
        "+ USE_SCHEMA on schema main.silver to chess-team: done",
        "+ SELECT on table main.silver.chess to chess-team: done",
        "3 grants changed",
    ]
    assert fake.catalog.may_select("main.silver.chess", ["chess-team"])
    assert run("apply").stdout.splitlines()[-1] == "0 grants changed"
    assert "  keep    SELECT on table main.silver.chess of chess-team: as it is" in run("plan", "--all").stdout


def test_the_json_is_one_object_and_nothing_else(fake: FakeWorkspace) -> None:
    planned = json.loads(run("plan", "--json").stdout)
    assert [each["privilege"] for each in planned["changes"]] == ["USE_CATALOG", "USE_SCHEMA", "SELECT"]
    applied = json.loads(run("apply", "--json").stdout)
    assert applied["plan_id"] == planned["plan_id"]
    assert [each["on"] for each in applied["done"]] == ["main", "main.silver", "main.silver.chess"]
    assert applied["failed"] == []


def test_an_unknown_principal_fails_the_command_in_the_end(fake: FakeWorkspace) -> None:
    fake.users.known = frozenset({"chess-team"})
    result = run("apply", "--json", "--set", "grants.games={chess: [chess-team, nobody]}")
    assert isinstance(result.exception, WorkspaceRefused)
    assert "does not know nobody" in json.loads(result.stdout)["failed"][0]["message"]
    assert fake.catalog.may_select("main.silver.chess", ["chess-team"])


def test_tables_that_lose_their_games_need_force(fake: FakeWorkspace) -> None:
    run("apply")
    lost = ("apply", "--set", "games.allow=[go]")
    assert isinstance(run(*lost).exception, PlanRefused)
    assert fake.catalog.may_select("main.silver.chess", ["chess-team"])
    assert run(*lost, "--force").exit_code == ExitCode.OK
    assert not fake.catalog.may_select("main.silver.chess", ["chess-team"])


def test_settings_without_a_catalog_are_refused_before_anybody_is_asked(fake: FakeWorkspace) -> None:
    assert isinstance(run("plan", "--set", "tables.catalog=null").exception, SettingsInvalid)
    assert fake.calls == []
