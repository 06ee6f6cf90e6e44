"""Grants in `demux plan`, `apply` and `destroy`, below the jobs'."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from demux.cli.app import app
from demux.core.errors import ExitCode, PlanRefused, WorkspaceRefused
from tests.conftest import Golden
from tests.fakes.workspace.fake import FakeWorkspace
from tests.support.databricks.deployments import WHEEL_NAME, Demux, write_settings
from tests.support.terminal import at_terminal, on_terminal

CHANGING = ("POST", "PUT", "PATCH", "DELETE")
TABLES = [f"main.silver.{game}" for game in ("chess", "go", "ludo")]
TEAMS = {"chess": ["chess-team"], "go": ["go-team"]}
RECORD = "/Volumes/main/ops/wheels/grants.prod/"


def wish(folder: Path, teams: dict[str, list[str]] = TEAMS, **sections: dict[str, Any]) -> None:
    """Settings with a catalog, and these readers."""
    write_settings(folder, grants={"games": teams}, **{"tables": {"catalog": "main"}, **sections})


@pytest.fixture
def workspace(here: Path, fake: FakeWorkspace) -> FakeWorkspace:
    """A workspace that has the games' tables; the settings say who reads them."""
    for table in TABLES:
        fake.catalog.add("table", table)
    wish(here)
    return fake


def readers(workspace: FakeWorkspace) -> dict[str, list[str]]:
    """Who may read each table."""
    teams = ("chess-team", "go-team", "others")
    return {table: [team for team in teams if workspace.catalog.may_select(table, [team])] for table in TABLES}


def changing(workspace: FakeWorkspace) -> list[str]:
    """The calls that may change something, in order."""
    calls = (call for call in workspace.calls if call.method in CHANGING and not call.path.endswith("download-url"))
    return [f"{call.method} {call.path}" for call in calls]


def test_plan_apply_and_destroy_with_grants_read_so(workspace: FakeWorkspace, demux: Demux, golden: Golden) -> None:
    golden("deploy/grants_plan.txt", demux("plan"))
    assert changing(workspace) == []
    golden("deploy/grants_apply.txt", demux("apply", "--yes"))
    assert readers(workspace) == dict(zip(TABLES, [["chess-team"], ["go-team"], []], strict=True))
    golden("deploy/grants_plan_again.txt", demux("plan"))
    golden("deploy/grants_destroy.txt", demux("destroy", "--yes"))
    assert readers(workspace) == {table: [] for table in TABLES}
    assert (workspace.jobs.held, workspace.files.held) == ({}, {})


def test_a_second_apply_calls_nothing_that_changes(workspace: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    workspace.calls.clear()
    assert "applied" not in demux("apply")
    assert changing(workspace) == []


def test_grants_come_after_the_jobs_and_alone_where_only_they_change(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    jobs = [call for call in changing(workspace) if "/jobs/" in call]
    assert changing(workspace).index(jobs[-1]) < min(
        number for number, call in enumerate(changing(workspace)) if "/permissions/table/" in call
    )
    workspace.calls.clear()
    wish(here, {**TEAMS, "ludo": ["others"]})
    text = demux("apply")
    assert "+ SELECT on table main.silver.ludo to others: done" in text
    assert text.endswith("3 grants changed\napplied")
    assert not [call for call in changing(workspace) if "/jobs/" in call]


def test_the_plan_as_json_has_the_grants(workspace: FakeWorkspace, demux: Demux) -> None:
    planned = json.loads(demux("plan", "--json"))["grants"]
    assert [(each["action"], each["on"]) for each in planned["changes"] if each["kind"] == "table"] == [
        ("grant", "main.silver.chess"),
        ("grant", "main.silver.go"),
    ]
    assert planned["waiting"] == []


def test_without_readers_or_a_catalog_nothing_is_asked_of_the_catalog(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    write_settings(here, tables={"catalog": "main"})
    assert json.loads(demux("plan", "--json"))["grants"] is None
    wish(here, tables={"catalog": None})
    assert demux("plan").endswith("! grants: tables.catalog is not set, so nothing is granted")
    assert not [call for call in workspace.calls if "/unity-catalog/permissions/" in call.path]


def test_who_is_taken_out_of_the_settings_loses_the_grant_even_the_last_one(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    write_settings(here, tables={"catalog": "main"})
    assert "- revoke  SELECT on table main.silver.chess from chess-team" in demux("plan")
    demux("apply")
    assert readers(workspace) == {table: [] for table in TABLES}


def test_a_game_whose_table_is_not_there_yet_waits_and_is_granted_later(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    wish(here, {"new": ["others"]}, games={"allow": ["chess", "go", "ludo", "new"]})
    assert "! waits   game new: there is no table main.silver.new yet" in demux("apply")
    workspace.catalog.add("table", "main.silver.new")
    assert "+ SELECT on table main.silver.new to others: done" in demux("apply")
    assert workspace.catalog.may_select("main.silver.new", ["others"])


def test_an_unknown_principal_stops_nothing_else_and_fails_the_command_in_the_end(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    workspace.users.known = frozenset({"chess-team", "analysts"})
    wish(here, {"chess": ["chess-team", "nobody"]})
    with pytest.raises(WorkspaceRefused, match="does not know nobody"):
        demux("apply")
    assert len(workspace.jobs.held) == 1
    assert readers(workspace)["main.silver.chess"] == ["chess-team"]
    found = CliRunner().invoke(app, ["apply", "--wheel", WHEEL_NAME])
    assert isinstance(found.exception, WorkspaceRefused)
    assert found.exception.exit_code == 2


def test_many_tables_lose_their_readers_only_by_force(here: Path, workspace: FakeWorkspace, demux: Demux) -> None:
    demux("apply")
    only_go = {"policy": "allow-list", "allow": ["go"]}
    wish(here, games=only_go)
    with pytest.raises(PlanRefused):
        demux("apply")
    demux("apply", "--force")
    assert readers(workspace)["main.silver.chess"] == []
    assert readers(workspace)["main.silver.go"] == ["go-team"]


def test_a_saved_plan_has_no_grants_and_says_so(workspace: FakeWorkspace, demux: Demux) -> None:
    said = "! grants are not in a saved plan: make them by `demux grants apply`"
    assert said in demux("plan", "--out", "plan.json")
    assert said in demux("apply", "--plan", "plan.json")
    assert len(workspace.jobs.held) == 1
    assert readers(workspace) == {table: [] for table in TABLES}
    demux("grants", "apply")
    assert readers(workspace)["main.silver.go"] == ["go-team"]


def test_destroy_leaves_what_others_granted(workspace: FakeWorkspace, demux: Demux) -> None:
    chess = workspace.catalog.existing("table", "main.silver.chess")
    chess.grants["others"] = {"SELECT"}
    demux("apply")
    demux("destroy", "--yes")
    assert chess.grants["others"] == {"SELECT"}
    assert "chess-team" not in chess.grants


def test_destroy_goes_on_where_a_grant_cannot_be_taken_back_and_ends_with_it(
    workspace: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    workspace.users.known = frozenset({"go-team"})
    with pytest.raises(WorkspaceRefused, match="does not know chess-team"):
        demux("destroy", "--yes")
    assert workspace.jobs.held == {}
    assert readers(workspace)["main.silver.go"] == []
    assert {path.startswith(RECORD) for path in workspace.files.held} == {True}
    workspace.users.known = None
    demux("destroy", "--yes")
    assert (readers(workspace)["main.silver.chess"], workspace.files.held) == ([], {})


@pytest.mark.thorough
def test_a_destroy_that_went_stale_while_somebody_was_asked_takes_nothing_back(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    with at_terminal(here, "destroy") as (process, keyboard):
        assert process.stdout is not None
        text = ""
        while "[y/N]" not in text:
            text += process.stdout.read(1) or "[y/N] never came"
        wish(here, databricks={"retries": 5})
        demux("apply")
        os.write(keyboard, b"y\n")
        text += process.stdout.read()
    assert process.returncode == ExitCode.TRANSIENT
    assert "Another command changed the deployment prod at the same time" in text
    assert readers(workspace) == dict(zip(TABLES, [["chess-team"], ["go-team"], []], strict=True))
    assert list(workspace.jobs.held) == [1001]


def test_a_destroy_claims_before_it_takes_back_and_takes_back_before_jobs_go(
    workspace: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    workspace.calls.clear()
    demux("destroy", "--yes")
    kinds = ("deployment.prod/00000003.json", "/permissions/", "grants.prod/00000001.json", "/jobs/delete")
    first = [min(number for number, call in enumerate(changing(workspace)) if kind in call) for kind in kinds]
    assert first == sorted(first)


def test_destroy_takes_back_grants_of_an_earlier_catalog_too(
    here: Path, workspace: FakeWorkspace, demux: Demux
) -> None:
    demux("apply")
    write_settings(here)
    demux("destroy", "--yes")
    assert readers(workspace) == {table: [] for table in TABLES}


@pytest.mark.thorough
@pytest.mark.parametrize("words", [(), pytest.param(("--json",), marks=pytest.mark.long)])
def test_on_a_terminal_grants_are_made_and_taken_back_after_a_question(
    here: Path, workspace: FakeWorkspace, demux: Demux, words: tuple[str, ...]
) -> None:
    demux("apply")
    before = readers(workspace)
    wish(here, {"go": ["go-team"]})
    code, text = on_terminal(here, "n\n", "grants", "apply", *words)
    assert (code, "Apply this plan? [y/N]" in text, "nothing was changed" in text) == (ExitCode.INTERRUPTED, True, True)
    assert readers(workspace) == before
    code, text = on_terminal(here, "y\n", "grants", "apply", *words)
    assert (code, "Apply this plan? [y/N]" in text) == (ExitCode.OK, True), text
    assert readers(workspace)["main.silver.chess"] == []
    wish(here)
    code, text = on_terminal(here, "", "grants", "apply", "--yes", *words)
    assert (code, "[y/N]" in text) == (ExitCode.OK, False), text
    assert readers(workspace) == before
    # there is nothing to ask about
    assert on_terminal(here, "", "grants", "apply", *words)[0] == ExitCode.OK
