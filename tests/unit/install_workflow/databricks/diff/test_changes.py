"""The difference between the jobs that should be and those that are."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import PlanRefused
from demux.core.names import names_of
from install_workflow.databricks.apply.apply_jobs import apply
from install_workflow.databricks.diff.changes import (
    JobAction,
    JobCall,
    WorkspacePlan,
    compare,
    require_modest,
    require_no_twin,
)
from install_workflow.databricks.diff.details import DifferenceKind
from install_workflow.databricks.jobs.job import PART_TAG, DeployedJob, ForeignJob, Job, JobJson, Permission, with_ids
from tests.fakes.workspace.jobs.job_defaults import kept
from tests.support.databricks.jobs import ANALYSTS, OPERATORS, changed, cluster_named, job, task

ONE = job("001", {"cluster_001": ["chess", "go"]})
TWO = job("002", {"cluster_002": ["ludo"]})
CALLER = job("bronze", {}, calls=["001", "002"])


def deployed(jobs: Sequence[Job], first_id: int = 11) -> list[DeployedJob]:
    """The jobs as a server keeps them, each with the next id."""
    ids = {each.part: first_id + number for number, each in enumerate(jobs)}
    return [
        DeployedJob(ids[each.part], each.part, kept(with_ids(each.settings, ids)), each.permissions) for each in jobs
    ]


def actions(plan: WorkspacePlan) -> dict[str, str]:
    return {change.part: change.action.value for change in plan.changes}


def said(plan: WorkspacePlan) -> list[tuple[str, str, str, str]]:
    """Difference, subject, field and reason of each detail."""
    return [
        (detail.difference.value, detail.subject, detail.field, detail.reason)
        for change in plan.changes
        for detail in change.details
    ]


class InMemory:
    """Jobs that are kept as a server keeps them."""

    def __init__(self, jobs: Sequence[DeployedJob]) -> None:
        self.held = {each.job_id: each for each in jobs}

    def create(self, settings: JobJson, permissions: Sequence[Permission], again: Callable[[], None]) -> int:
        job_id = max(self.held, default=0) + 1
        self.held[job_id] = DeployedJob(job_id, settings["tags"][PART_TAG], kept(settings), tuple(permissions))
        return job_id

    def reset(self, job_id: int, settings: JobJson) -> None:
        old = self.held[job_id]
        self.held[job_id] = replace(old, part=settings["tags"][PART_TAG], settings=kept(settings))

    def permit(self, job_id: int, permissions: Sequence[Permission]) -> None:
        self.held[job_id] = replace(self.held[job_id], permissions=tuple(permissions))

    def delete(self, job_id: int) -> None:
        del self.held[job_id]


game_names = st.sampled_from(["chess", "go", "ludo", "tag", "shogi", "whist"])


@st.composite
def deployments(draw: st.DrawFn) -> list[Job]:
    """Some jobs with different games, and perhaps one that runs the others."""
    games = draw(st.lists(game_names, unique=True))
    parts: dict[str, dict[str, list[str]]] = {}
    for game in games:
        part, cluster = draw(st.sampled_from(["001", "002", "003"])), draw(st.sampled_from(["c1", "c2"]))
        parts.setdefault(part, {}).setdefault(cluster, []).append(game)
    options: dict[str, Any] = draw(st.sampled_from([{}, {"timeout_seconds": 60}, {"sets": ["games.limit=7"]}]))
    permissions = draw(st.sampled_from([(), (ANALYSTS,), (ANALYSTS, OPERATORS)]))
    jobs = [job(part, clusters, permissions=permissions, **options) for part, clusters in parts.items()]
    return [*jobs, job("bronze", {}, calls=sorted(parts))] if draw(st.booleans()) and parts else jobs


@given(deployments())
def test_what_is_deployed_as_wanted_stays(jobs: list[Job]) -> None:
    plan = compare(jobs, deployed(jobs))
    assert plan.is_empty
    assert {change.action for change in plan.changes} <= {JobAction.KEEP}
    assert said(plan) == []


@given(deployments(), deployments(), st.booleans())
def test_applying_the_difference_gives_what_is_wanted(old: list[Job], new: list[Job], doubled: bool) -> None:
    before = [*deployed(old), *(deployed(old[:1], 90) if doubled else [])]
    workspace = InMemory(before)
    apply(workspace, compare(new, before))
    after = list(workspace.held.values())
    assert compare(new, after).is_empty
    assert sorted(each.part for each in after) == sorted(each.part for each in new)


@given(deployments(), deployments())
def test_the_order_of_the_arguments_does_not_matter(old: list[Job], new: list[Job]) -> None:
    now = deployed(old)
    assert compare(new[::-1], now[::-1]) == compare(new, now)


@given(deployments(), deployments())
def test_the_state_depends_on_what_is_deployed_and_on_nothing_else(old: list[Job], new: list[Job]) -> None:
    assert compare(new, deployed(old)).state_id == compare(old, deployed(old)).state_id
    assert (compare([], deployed(old)).state_id == compare([], deployed(new)).state_id) == compare(
        old, deployed(new)
    ).is_empty


def test_a_first_plan_creates_every_job_and_names_every_game() -> None:
    plan = compare([CALLER, TWO, ONE], [])
    assert [(change.part, change.calls) for change in plan.changes] == [
        ("001", (JobCall.CREATE,)),
        ("002", (JobCall.CREATE,)),
        ("bronze", (JobCall.CREATE,)),
    ]
    assert plan.changes[0].reason == "no such job yet: 2 tasks on 1 cluster"
    assert said(plan)[:3] == [
        ("added", "task deserialize_chess", "", "new game"),
        ("added", "task deserialize_go", "", "new game"),
        ("added", "task deserialize_ludo", "", "new game"),
    ]
    assert plan.changes[0].details[0].after == {"games": ["chess"], "engine": "stream", "cluster": "cluster_001"}


def test_a_new_and_a_retired_game_are_said_and_counted() -> None:
    plan = compare([job("001", {"cluster_001": ["chess", "tag"]})], deployed([ONE]))
    assert said(plan) == [
        ("removed", "task deserialize_go", "", "game retired"),
        ("added", "task deserialize_tag", "", "new game"),
    ]
    assert plan.changes[0].reason == "1 task added, 1 task removed"
    assert (plan.deployed_games, plan.removed_games) == (2, 1)


def test_a_game_on_another_cluster_has_moved() -> None:
    old, new = ({"c1": ["chess", "go"], "c2": ["ludo"]}, {"c1": ["chess"], "c2": ["go", "ludo"]})
    plan = compare([job("001", new)], deployed([job("001", old)]))
    (moved,) = plan.changes[0].details
    assert (moved.difference, moved.subject, moved.before, moved.after) == (
        DifferenceKind.MOVED,
        "task deserialize_go",
        "c1",
        "c2",
    )
    assert plan.changes[0].reason == "1 task moved"


def test_a_game_in_another_job_has_moved_and_is_not_retired() -> None:
    new = [job("001", {"cluster_001": ["chess"]}), job("002", {"cluster_002": ["go", "ludo"]})]
    plan = compare(new, deployed([ONE, TWO]))
    assert said(plan) == [
        ("removed", "task deserialize_go", "", "moved to part 002"),
        ("added", "task deserialize_go", "", "moved from part 001"),
    ]
    assert plan.removed_games == 0


def by_cluster(*games: str, of: Job = ONE, sets: Sequence[str] = ()) -> Job:
    """A job with one task for all games of a cluster."""
    words = [f"--game={game}" for game in games]
    return changed(of, tasks=[task("deserialize_cluster_001", ["deserialize", *words], "cluster_001", sets)])


def by_fleet(*games: str, of: Job = ONE) -> Job:
    """The same by the fleet."""
    return by_cluster(*games, of=of, sets=["run.engine=fleet"])


def test_a_task_that_was_made_by_hand_and_names_no_game_is_no_game() -> None:
    now = job("001", {"cluster_001": ["chess"]})
    report = task("deserialize_report", ["report"], "cluster_001")
    by_hand = changed(now, tasks=[*now.settings["tasks"], report])
    plan = compare([now], [DeployedJob(1, "001", by_hand.settings)])
    assert (plan.deployed_games, plan.removed_games) == (1, 0)
    assert [(each.subject, each.before, each.reason) for each in plan.changes[0].details] == [
        ("task deserialize_report", {"cluster": "cluster_001"}, "not in the plan any more")
    ]


def test_one_task_for_all_games_of_a_cluster_takes_the_games_over() -> None:
    plan = compare([by_cluster("chess", "go")], deployed([ONE]))
    assert said(plan) == [
        ("removed", "task deserialize_chess", "", "moved to task deserialize_cluster_001"),
        (
            "added",
            "task deserialize_cluster_001",
            "",
            "moved from task deserialize_chess, task deserialize_go",
        ),
        ("removed", "task deserialize_go", "", "moved to task deserialize_cluster_001"),
    ]
    assert plan.removed_games == 0


def test_another_engine_is_the_reason_of_the_change() -> None:
    fleet = by_fleet("chess", "go")
    plan = compare([fleet], deployed([ONE]))
    assert (plan.changes[0].calls, plan.removed_games, plan.engine) == ((JobCall.RESET,), 0, "fleet")
    assert plan.changes[0].reason == "engine stream becomes fleet: 1 task added, 2 tasks removed"
    after = plan.changes[0].details[1].after
    assert after == {"games": ["chess", "go"], "engine": "fleet", "cluster": "cluster_001"}
    back = compare([ONE], deployed([fleet]))
    assert (back.changes[0].reason, back.engine) == (
        "engine fleet becomes stream: 2 tasks added, 1 task removed",
        "stream",
    )
    # the task stays, with another parameter
    plan = compare([fleet], deployed([by_cluster("chess", "go")]))
    assert plan.changes[0].reason == "engine stream becomes fleet: 1 task changed"
    assert said(plan) == [("added", "task deserialize_cluster_001", "parameter run.engine", "")]
    assert compare([], deployed([fleet])).engine is None


def test_an_apply_that_stopped_midway_has_left_two_engines() -> None:
    plan = compare([by_fleet("go"), by_fleet("ludo", of=TWO)], deployed([by_fleet("go"), TWO]))
    assert [change.reason for change in plan.changes] == [
        "nothing changed",
        "engine fleet and stream becomes fleet: 1 task added, 1 task removed",
    ]


def test_a_game_that_a_task_is_told_another_way_is_neither_new_nor_retired() -> None:
    key = names_of("将棋").key
    by_name = job("001", {})
    by_key = copy.deepcopy(by_name)
    for each, words in ((by_name, "--game=将棋"), (by_key, f"--game-key={key}")):
        each.settings["tasks"].append(task("deserialize_c", ["deserialize", words], "c"))
    plan = compare([by_key], [DeployedJob(1, "001", by_name.settings)])
    assert (plan.deployed_games, plan.removed_games) == (1, 0)
    (detail,) = (detail for change in plan.changes for detail in change.details)
    assert (detail.field, detail.before, detail.after, detail.reason) == ("game", "将棋", key, "named another way")


def test_the_games_of_such_a_task_come_and_go_one_by_one() -> None:
    plan = compare([by_cluster("chess", "tag")], deployed([by_cluster("chess", "go")]))
    assert said(plan) == [
        ("added", "task deserialize_cluster_001", "game", "new game"),
        ("removed", "task deserialize_cluster_001", "game", "game retired"),
    ]
    assert plan.changes[0].reason == "1 task changed"


def test_a_changed_parameter_is_named_with_both_values() -> None:
    old = job("001", {"cluster_001": ["chess"]}, sets=["games.limit=50", "run.decoder=arrow"])
    new = job("001", {"cluster_001": ["chess"]}, sets=["games.limit=70", "kafka.group=a"])
    (limit, group, decoder) = compare([new], deployed([old])).changes[0].details
    assert (limit.field, limit.before, limit.after) == ("parameter games.limit", "50", "70")
    assert (group.difference, group.field, group.after) == (DifferenceKind.ADDED, "parameter kafka.group", "a")
    assert (decoder.difference, decoder.before) == (DifferenceKind.REMOVED, "arrow")


def test_other_fields_are_named_by_their_path() -> None:
    schedule = {"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "UTC"}
    old = changed(ONE, schedule=schedule)
    new = changed(
        ONE, schedule={**schedule, "timezone_id": "Asia/Tokyo"}, job_clusters=[cluster_named("cluster_001", 8)]
    )
    plan = compare([new], deployed([old]))
    assert [(each.subject, each.field, each.before, each.after) for each in plan.changes[0].details] == [
        ("cluster cluster_001", "num_workers", 2, 8),
        ("job", "schedule.timezone_id", "UTC", "Asia/Tokyo"),
    ]
    assert plan.changes[0].reason == "1 cluster setting changed, 1 job setting changed"


def test_what_a_hand_changed_is_said_and_set_right() -> None:
    by_hand = deployed([ONE])[0]
    edited = copy.deepcopy(dict(by_hand.settings))
    edited["tasks"][0]["max_retries"] = 9
    edited["tasks"].append(task("mine", ["x"], "cluster_001"))
    plan = compare([ONE], [replace(by_hand, settings=edited)])
    assert said(plan) == [
        ("changed", "task deserialize_chess", "max_retries", ""),
        ("removed", "task mine", "", "not in the plan any more"),
    ]
    assert plan.changes[0].calls == (JobCall.RESET,)


def test_a_secret_that_a_hand_wrote_into_a_job_is_not_shown() -> None:
    old = job("001", {"cluster_001": ["chess"]}, sets=["kafka.password=hunter2"])
    environment = {"job_cluster_key": "cluster_001", "new_cluster": {"spark_env_vars": {"API_TOKEN": "hunter2"}}}
    plan = compare([ONE], deployed([changed(old, job_clusters=[environment])]))
    assert "hunter2" not in repr(plan)
    assert "***" in repr(plan)


def test_changed_permissions_take_one_call_and_leave_the_settings() -> None:
    plan = compare([replace(ONE, permissions=(ANALYSTS,))], deployed([replace(ONE, permissions=(OPERATORS,))]))
    assert plan.changes[0].calls == (JobCall.PERMIT,)
    assert said(plan) == [
        ("added", "group analysts", "permission", ""),
        ("removed", "group operators", "permission", ""),
    ]
    assert plan.changes[0].reason == "2 permissions changed"


def test_a_job_that_was_deleted_by_hand_is_made_again_and_its_callers_follow() -> None:
    plan = compare([ONE, TWO, CALLER], [each for each in deployed([ONE, TWO, CALLER]) if each.part != "002"])
    assert [(change.part, change.action.value) for change in plan.changes] == [
        ("001", "keep"),
        ("002", "create"),
        ("bronze", "update"),
    ]
    (detail,) = plan.changes[2].details
    assert (detail.subject, detail.field, detail.before, detail.after) == (
        "task run_002",
        "run_job_task.job_id",
        12,
        "${part:002}",
    )


def test_of_several_jobs_of_a_part_the_oldest_stays_and_who_calls_another_is_changed() -> None:
    jobs = [*deployed([ONE, TWO, CALLER]), *deployed([ONE], 5), *deployed([TWO], 99)]
    plan = compare([ONE, TWO, CALLER], jobs)
    assert [(change.part, change.action.value, change.job_id) for change in plan.changes] == [
        ("001", "keep", 5),
        ("002", "keep", 12),
        ("bronze", "update", 13),
        ("001", "remove double", 11),
        ("002", "remove double", 99),
    ]
    assert plan.deployed_games == 3


def test_a_job_goes_before_those_that_it_calls() -> None:
    plan = compare([], deployed([ONE, TWO, CALLER]))
    assert [(change.part, change.action.value) for change in plan.changes] == [
        ("bronze", "delete"),
        ("002", "delete"),
        ("001", "delete"),
    ]
    assert (plan.deployed_games, plan.removed_games) == (3, 3)


def without_part_tag(of: DeployedJob) -> DeployedJob:
    tags = {name: value for name, value in of.settings["tags"].items() if name != PART_TAG}
    return replace(of, part="", settings={**of.settings, "tags": tags})


def test_a_job_without_the_tag_of_its_part_is_known_by_its_name() -> None:
    plan = compare([ONE], [without_part_tag(deployed([ONE])[0])])
    assert actions(plan) == {"001": "update"}
    assert said(plan) == [("added", "job", f"tags.{PART_TAG}", "")]


def test_a_job_without_that_tag_is_a_double_when_another_has_its_place() -> None:
    plan = compare([ONE], [without_part_tag(deployed([ONE])[0]), *deployed([ONE], 20)])
    assert [(change.action.value, change.job_id) for change in plan.changes] == [("keep", 20), ("remove double", 11)]


def test_a_job_without_that_tag_and_with_another_name_goes_with_a_reason() -> None:
    lost = without_part_tag(deployed([changed(ONE, name="mine")])[0])
    plan = compare([TWO], [*deployed([TWO], 20), lost])
    assert plan.changes[-1].reason == "its tag protobuf_demux_part is gone, so its part is unknown"


def test_a_game_that_comes_from_a_job_of_no_part_says_so() -> None:
    lost = without_part_tag(deployed([changed(ONE, name="mine")])[0])
    plan = compare([ONE], [lost])
    assert {detail.reason for detail in plan.changes[0].details} == {"moved from a job of no part"}


def test_a_job_becomes_another_part_of_the_same_name() -> None:
    everything = changed(job("all", {"cluster_001": ["chess", "go"]}), name="Game_Protobufs_wrapper_prod")
    bronze = changed(job("bronze", {}, calls=["001"]), name="Game_Protobufs_wrapper_prod")
    plan = compare([ONE, bronze], deployed([everything]))
    assert [(change.part, change.action.value, change.job_id) for change in plan.changes] == [
        ("001", "create", None),
        ("bronze", "update", 11),
    ]
    assert plan.removed_games == 0


def test_jobs_of_others_are_in_the_plan_and_in_no_change() -> None:
    others = [ForeignJob(70, ONE.settings["name"]), ForeignJob(60, ONE.settings["name"], "dev")]
    plan = compare([ONE], [], others)
    assert [each.job_id for each in plan.foreign] == [60, 70]
    assert [change.job_id for change in plan.changes] == [None]


def test_a_job_is_not_made_beside_one_of_its_name_that_has_no_tag() -> None:
    name = ONE.settings["name"]
    with pytest.raises(PlanRefused) as refused:
        require_no_twin(compare([ONE], [], [ForeignJob(70, name), ForeignJob(60, name, "dev")]))
    assert refused.value.message == (
        f"There are jobs without our tag whose names the plan would give once more: 70 ({name})."
    )


def test_a_job_of_another_deployment_and_one_beside_a_job_of_ours_are_no_twins() -> None:
    name = ONE.settings["name"]
    require_no_twin(compare([ONE], [], [ForeignJob(60, name, "dev")]))
    require_no_twin(compare([ONE], deployed([ONE]), [ForeignJob(70, name)]))


@pytest.mark.parametrize(("keeps", "share"), [("abc", 0.25), ("ab", 0.5), ("", 1.0), ("abcd", 0.0), ("abcdx", 0.0)])
def test_a_plan_may_remove_up_to_a_share_of_the_games(keeps: str, share: float) -> None:
    require_modest(compare([job("001", {"c": keeps})], deployed([job("001", {"c": "abcd"})])), share)


@pytest.mark.parametrize(("keeps", "share"), [("ab", 0.25), ("xyzabc", 0.2), ("", 0.99), ("abc", 0.0)])
def test_a_plan_that_removes_more_is_refused(keeps: str, share: float) -> None:
    plan = compare([job("001", {"c": keeps})], deployed([job("001", {"c": "abcd"})]))
    with pytest.raises(PlanRefused, match=r"would remove \d of 4 games") as refused:
        require_modest(plan, share)
    assert "--force" in refused.value.remedy


def test_nothing_deployed_is_nothing_removed() -> None:
    require_modest(compare([ONE], []), 0.0)


def many(games: int, shift: int) -> list[Job]:
    """Jobs with 500 games each, 20 on a cluster."""
    jobs = []
    for part in range(games // 500):
        names = [f"game_{part * 500 + number + shift}" for number in range(500)]
        jobs.append(job(f"{part:03d}", {f"c{first:03d}": names[first * 20 : first * 20 + 20] for first in range(25)}))
    return jobs


def calls_of(games: int, shift: int) -> int:
    """How many calls of functions a comparison takes: with twice the games, it must be about twice as many."""
    now, wanted = deployed(many(games, 0)), many(games, shift)
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        plan = compare(wanted, now)
    finally:
        sys.setprofile(before)
    assert (plan.deployed_games, plan.removed_games) == (games, shift)
    return calls


@pytest.mark.thorough
def test_the_work_grows_with_the_games_and_not_with_their_square() -> None:
    assert calls_of(2000, 100) < 2.5 * calls_of(1000, 100)
