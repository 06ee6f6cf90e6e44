"""A plan for the workspace on paper: for people, and for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from demux.core.names import names_of
from install_workflow.databricks.diff.changes import WorkspacePlan, compare
from install_workflow.databricks.diff.render import as_text, content_of, with_names
from install_workflow.databricks.jobs.job import DeployedJob, ForeignJob, Job, with_ids
from tests.fakes.workspace.jobs.job_defaults import kept
from tests.support.databricks.jobs import ANALYSTS, OPERATORS, changed, cluster_named, job, task

HOURLY = {"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "UTC"}
ONE = job("001", {"cluster_001": ["chess", "go"], "cluster_002": ["ludo"]}, permissions=(ANALYSTS,))
TWO = job("002", {"cluster_003": ["tag"]})
OLD = job("003", {"cluster_004": ["whist"]})
CALLER = job("bronze", {}, calls=["001", "002"], schedule=HOURLY)


def deployed(*jobs: Job) -> list[DeployedJob]:
    ids = {each.part: 101 + number for number, each in enumerate(jobs)}
    return [
        DeployedJob(ids[each.part], each.part, kept(with_ids(each.settings, ids)), each.permissions) for each in jobs
    ]


def everything() -> WorkspacePlan:
    one = job(
        "001",
        {"cluster_001": ["chess"], "cluster_002": ["go", "shogi"]},
        sets=["games.limit=70", "kafka.password=secret:env/KAFKA"],
        permissions=(OPERATORS,),
    )
    by_hand = changed(ONE, max_concurrent_runs=3, job_clusters=[cluster_named("cluster_001", 8)])
    now = deployed(replace(by_hand, permissions=ONE.permissions), TWO, OLD, CALLER)
    double = replace(now[1], job_id=200)
    foreign = [ForeignJob(7, "Game_Protobufs_wrapper_prod_001"), ForeignJob(8, "Game_Protobufs_wrapper_prod", "dev")]
    return compare([one, TWO, CALLER, job("004", {"cluster_004": ["ludo"]})], [*now, double], foreign)


def hostile() -> WorkspacePlan:
    games = ["../../etc", "将棋", "[red]bold[/]", "zero\u200bwidth", "x" * 100]
    words = [f"--game={game}" for game in games]
    tasks = [
        *(task(f"deserialize_{number}", ["deserialize", word], "c") for number, word in enumerate(words)),
        task("deserialize_c", ["deserialize", *words], "c"),
    ]
    return compare([changed(job("001", {"c": []}), tasks=tasks, name="a\u202eb")], [])


def to_fleet() -> WorkspacePlan:
    sets = ["games.limit=50", "run.engine=fleet"]
    together = task("deserialize_cluster_001", ["deserialize", "--game=chess", "--game=go", "--game=ludo"], "c", sets)
    alone = task("deserialize_cluster_002", ["deserialize", "--game=tag"], "cluster_003", sets)
    fleet = [changed(ONE, tasks=[together], job_clusters=[cluster_named("c")]), changed(TWO, tasks=[alone]), CALLER]
    return compare(fleet, deployed(ONE, TWO, CALLER))


PLANS = {
    "every_action": everything(),
    "first": compare([ONE, TWO, CALLER], []),
    "nothing_to_do": compare([ONE, TWO, CALLER], deployed(ONE, TWO, CALLER)),
    "all_goes": compare([], deployed(ONE, TWO, CALLER)),
    "hostile_names": hostile(),
    "to_fleet": to_fleet(),
}

Golden = Callable[[str, str], None]
plans = pytest.mark.parametrize(("name", "plan"), PLANS.items())


@plans
def test_the_text_is_what_people_have_read_before(name: str, plan: WorkspacePlan, golden: Golden) -> None:
    golden(f"workspace_plan/{name}.txt", as_text(plan))


@plans
def test_the_text_with_what_stays_is_what_people_have_read_before(
    name: str, plan: WorkspacePlan, golden: Golden
) -> None:
    golden(f"workspace_plan/{name}_all.txt", as_text(plan, with_kept=True))


@plans
def test_the_json_is_what_programs_have_read_before(name: str, plan: WorkspacePlan, golden: Golden) -> None:
    golden(f"workspace_plan/{name}.json", json.dumps(content_of(plan), indent=2))


@plans
def test_the_json_says_all_that_the_plan_says(name: str, plan: WorkspacePlan) -> None:
    read = json.loads(json.dumps(content_of(plan)))
    assert (read["plan_id"], read["state_id"]) == (plan.plan_id, plan.state_id)
    assert [(each["action"], each["part"], each["job_id"]) for each in read["changes"]] == [
        (change.action.value, change.part, change.job_id) for change in plan.changes
    ]
    assert [len(each["details"]) for each in read["changes"]] == [len(change.details) for change in plan.changes]
    assert [each["job_id"] for each in read["foreign"]] == [each.job_id for each in plan.foreign]


@plans
def test_the_text_has_one_line_for_each_job_and_at_most_one_for_each_difference(name: str, plan: WorkspacePlan) -> None:
    lines = as_text(plan, with_kept=True).splitlines()
    differences = [line for line in lines if line.startswith("    ")]
    assert len(lines) - len(differences) == len(plan.changes) + len(plan.foreign) + 1
    assert len(differences) <= sum(len(change.details) for change in plan.changes)
    assert all(line.isprintable() for line in lines)


def test_what_differs_in_every_task_has_one_line() -> None:
    games = [f"game_{number}" for number in range(1000)]
    old = job("001", {"c": games}, sets=["games.limit=5"])
    new = job("001", {"c": games}, sets=["games.limit=7"])
    assert as_text(compare([new], deployed(old))).splitlines()[1] == (
        "    ~ tasks deserialize_game_0, deserialize_game_1, deserialize_game_10 and 997 more: "
        "parameter games.limit changed from 5 to 7"
    )


def test_another_wheel_is_one_change_of_one_library() -> None:
    tasks = [{**each, "libraries": [{"whl": "/Volumes/main/demux/wheels/new.whl"}]} for each in ONE.settings["tasks"]]
    text = as_text(compare([changed(TWO, tasks=tasks[:1])], deployed(changed(TWO, tasks=ONE.settings["tasks"][:1]))))
    assert text.splitlines()[1] == (
        "    ~ task deserialize_chess: libraries changed from "
        '{"whl": "/Volumes/main/demux/wheels/protobuf_demux-0.1.0-py3-none-any.whl"} to '
        '{"whl": "/Volumes/main/demux/wheels/new.whl"}'
    )


def test_a_game_that_a_task_has_by_its_key_is_shown_by_its_name() -> None:
    key = names_of("将棋").key
    plan = compare(
        [changed(TWO, tasks=[task("deserialize_c", ["deserialize", f"--game-key={key}"], "cluster_003")])], []
    )
    assert f"(game {key}) on cluster_003 added" in as_text(plan)
    named = with_names(plan, {key: "将棋"})
    assert "(game 将棋) on cluster_003 added" in as_text(named)
    assert named.plan_id == plan.plan_id
