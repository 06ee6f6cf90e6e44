"""A plan that is saved, read again, and refused when it no longer fits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from demux.core.errors import PlanRefused
from install_workflow.databricks.diff.changes import WorkspacePlan, compare
from install_workflow.databricks.diff.render import from_text, require_same_state, require_unchanged, to_text
from install_workflow.databricks.jobs.job import DeployedJob, ForeignJob
from tests.fakes.workspace.jobs.job_defaults import kept
from tests.support.databricks.jobs import ANALYSTS, OPERATORS, job

HOST = "https://dbc-1.example"
ONE = job("001", {"cluster_001": ["chess", "将棋"]}, permissions=(ANALYSTS, OPERATORS))
CALLER = job("bronze", {}, calls=["001"])
NOW = [DeployedJob(11, "001", kept(job("001", {"cluster_001": ["go"]}).settings))]
PLAN = compare([ONE, CALLER], NOW, [ForeignJob(7, "Game_Protobufs_wrapper_prod_001", "dev")])


def edited(**fields: Any) -> str:
    return json.dumps({**json.loads(to_text(PLAN, HOST)), **fields})


@pytest.mark.parametrize("plan", [PLAN, compare([], NOW), compare([], [])], ids=["changes", "deletes", "nothing"])
def test_a_saved_plan_is_read_as_it_was(plan: WorkspacePlan) -> None:
    assert from_text(to_text(plan, HOST), HOST) == plan


def test_a_plan_for_another_workspace_is_refused() -> None:
    with pytest.raises(
        PlanRefused, match=r"is for the workspace https://dbc-1\.example, and this is https://dbc-2\.example"
    ):
        from_text(to_text(PLAN, HOST), "https://dbc-2.example")


def test_a_plan_is_saved_as_readable_text() -> None:
    assert "将棋" in to_text(PLAN, HOST)
    assert to_text(PLAN, HOST).endswith("}\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no plan"),
        ("[]", "is no plan"),
        ("{}", "is no plan"),
        (edited(version=1), "has version 1, and this release reads 3"),
        (edited(version="3"), "has version '3', and this release reads 3"),
        ("[" * 100_000, "is no plan"),
        (edited(changes=[{}]), "is no plan"),
        (edited(changes=[]), "was changed after it was saved"),
        (edited(state_id="0" * 16), "was changed after it was saved"),
        (to_text(PLAN, HOST).replace("--game", "--gane"), "was changed after it was saved"),
    ],
)
def test_what_is_no_saved_plan_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PlanRefused, match=reason):
        from_text(text, HOST)


def test_a_plan_for_the_same_state_passes_whatever_else_is_wanted_by_now() -> None:
    require_same_state(PLAN, compare([CALLER], NOW, PLAN.foreign))


@pytest.mark.parametrize(
    "now",
    [
        [],
        [DeployedJob(12, "001", NOW[0].settings)],
        [DeployedJob(11, "001", {**NOW[0].settings, "timeout_seconds": 5})],
        [DeployedJob(11, "001", NOW[0].settings, (ANALYSTS,))],
        [*NOW, DeployedJob(12, "001", NOW[0].settings)],
    ],
    ids=["deleted", "made again", "edited", "permitted", "doubled"],
)
def test_a_plan_for_another_state_is_refused(now: list[DeployedJob]) -> None:
    with pytest.raises(PlanRefused, match="The workspace changed since the plan"):
        require_same_state(PLAN, compare([ONE, CALLER], now, PLAN.foreign))


def test_what_the_server_writes_another_way_is_the_same_state() -> None:
    settings = {**NOW[0].settings, "timeout_seconds": 0, "health": {}}
    require_same_state(PLAN, compare([ONE, CALLER], [DeployedJob(11, "001", settings)], PLAN.foreign))


@pytest.mark.parametrize(
    "fields",
    [
        {"removed_games": 99},
        {"foreign": []},
        {"changes": [{**each, "details": []} for each in json.loads(to_text(PLAN, HOST))["changes"]]},
        {"changes": [{**each, "reason": "harmless"} for each in json.loads(to_text(PLAN, HOST))["changes"]]},
    ],
    ids=["count", "foreign", "details", "reason"],
)
def test_a_plan_that_shows_something_else_than_it_does_is_refused(fields: dict[str, Any]) -> None:
    require_unchanged(from_text(to_text(PLAN, HOST), HOST), PLAN)
    with pytest.raises(PlanRefused, match="was changed after it was saved"):
        require_unchanged(from_text(edited(**fields), HOST), PLAN)
