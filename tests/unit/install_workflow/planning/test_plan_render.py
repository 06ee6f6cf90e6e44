"""A plan on paper: for people, and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from demux.core.settings.games import GamesSettings, Policy
from install_workflow.planning.plan import Plan, as_text, content_of, make_plan

RUNNING = {"chess": "cluster_001", "go": "cluster_001", "ludo": "cluster_001", "old": "cluster_002"}
HOSTILE = {"../../etc", "a'b; drop table x", "将棋", "[red]bold[/]", "zero\u200bwidth", "new"}

PLANS = {
    "every_action": make_plan(
        ["chess", "go", "ludo", "new", "uninvited"],
        RUNNING,
        GamesSettings(policy=Policy.ALLOW_LIST, allow=("chess", "go", "ludo", "new")),
        2,
    ),
    "hostile_names": make_plan(HOSTILE, {"chess": "cluster_001"}, GamesSettings(limit=5), 20),
    "nothing_to_do": make_plan([], {"chess": "cluster_001"}, GamesSettings(), 20),
    "empty": make_plan([], {}, GamesSettings(), 20),
}

Golden = Callable[[str, str], None]
plans = pytest.mark.parametrize(("name", "plan"), PLANS.items())


@plans
def test_the_text_is_what_people_have_read_before(name: str, plan: Plan, golden: Golden) -> None:
    golden(f"plan/{name}.txt", as_text(plan))


@plans
def test_the_text_with_what_stays_is_what_people_have_read_before(name: str, plan: Plan, golden: Golden) -> None:
    golden(f"plan/{name}_all.txt", as_text(plan, with_kept=True))


@plans
def test_the_json_is_what_programs_have_read_before(name: str, plan: Plan, golden: Golden) -> None:
    golden(f"plan/{name}.json", json.dumps(content_of(plan), indent=2))


@plans
def test_the_json_says_all_that_the_plan_says(name: str, plan: Plan) -> None:
    read = json.loads(json.dumps(content_of(plan)))
    assert read["plan_id"] == plan.plan_id
    assert [(c["action"], c["game"], c["task"], c["cluster"], c["reason"]) for c in read["changes"]] == [
        (c.action.value, c.task.game, c.task.key, c.task.cluster, c.reason) for c in plan.changes
    ]
    assert [(w["game"], w["reason"]) for w in read["waiting"]] == [(w.game, w.reason) for w in plan.waiting]


@plans
def test_the_text_has_one_line_for_each_change_whatever_the_names_are(name: str, plan: Plan) -> None:
    lines = as_text(plan, with_kept=True).splitlines()
    assert len(lines) == len(plan.changes) + len(plan.waiting) + 1
