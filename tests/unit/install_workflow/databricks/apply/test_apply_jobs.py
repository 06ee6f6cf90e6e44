"""Plan and apply against a workspace over HTTP: whatever fails and wherever it stops, the next apply ends the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from demux.core.errors import ConcurrentChange, DemuxError, WorkspaceUnavailable
from demux.core.http.client import Tries
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.apply.apply_jobs import CallMoment, JobStep, apply
from install_workflow.databricks.diff.changes import JobAction, WorkspacePlan, compare
from install_workflow.databricks.diff.fields import comparable
from install_workflow.databricks.diff.render import from_text, to_text
from install_workflow.databricks.jobs.job import OWNER_TAG, PART_TAG, Job, with_ids, with_parts
from install_workflow.databricks.jobs.jobs_api import Workspace
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.faults import ALWAYS, Fault, Way, When
from tests.fakes.workspace.http.server import serving
from tests.support.databricks.jobs import ANALYSTS, DEPLOYMENT, OPERATORS, changed, job, task

ONE = job("001", {"cluster_001": ["chess", "go"]}, permissions=(ANALYSTS,))
TWO = job("002", {"cluster_002": ["ludo"]}, permissions=(ANALYSTS,))
THREE = job("003", {"cluster_003": ["tag"]})
CALLER = job("bronze", {}, calls=["001", "002"])
WANTED = [ONE, TWO, CALLER]

# part, settings and permissions of each of our jobs
Held = list[tuple[str, dict[str, Any], dict[tuple[str, str], str]]]

ONCE, OFTEN = Tries(retries=0, timeout_s=20), Tries(retries=3, timeout_s=20)
# long enough for a busy machine, short enough to wait for it at every call
SILENT_S = 0.2


@pytest.fixture(scope="module")
def served() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace()) as workspace:
        yield workspace


@pytest.fixture
def fake(served: FakeWorkspace) -> FakeWorkspace:
    """A workspace with nothing in it."""
    served.faults.clear()
    served.jobs.held.clear()
    served.calls.clear()
    served.jobs.next_id = 1001
    return served


@cache
def connection(url: str, token: str, tries: Tries) -> WorkspaceConnection:
    return WorkspaceConnection({"host": url, "token": token, "auth_type": "pat"}, tries, sleep=lambda _: None)


def workspace_of(fake: FakeWorkspace, tries: Tries = OFTEN) -> Workspace:
    return Workspace(connection(fake.url, fake.token, tries))


def hurried(tries: Tries, way: Way) -> Tries:
    """The tries, with a wait that ends soon where no answer will come."""
    return replace(tries, timeout_s=SILENT_S) if way is Way.SILENT else tries


def plan_of(workspace: Workspace, jobs: Sequence[Job] = WANTED) -> WorkspacePlan:
    found = workspace.find(DEPLOYMENT, {str(each.settings["name"]) for each in jobs})
    return compare(jobs, found.jobs, found.foreign)


def install(
    workspace: Workspace, jobs: Sequence[Job] = WANTED, tell: Callable[[JobStep], None] = lambda _: None
) -> WorkspacePlan:
    """Plan and apply; the plan that was applied."""
    plan = plan_of(workspace, jobs)
    apply(workspace, plan, tell)
    return plan


def is_ours(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("tags", {}).get(OWNER_TAG) == DEPLOYMENT)


def held(fake: FakeWorkspace) -> Held:
    """Part, settings and permissions of our jobs, ids left out."""
    ours = [each for each in fake.jobs.held.values() if is_ours(each.settings)]
    parts = {each.job_id: each.settings["tags"][PART_TAG] for each in ours}
    found = [(parts[each.job_id], with_parts(comparable(each.settings), parts), each.acl) for each in ours]
    return sorted(found, key=lambda each: each[0])


def old_state(fake: FakeWorkspace) -> None:
    """Make jobs that take a create, resets, new permissions, and deletes of a job and a double."""
    fake.jobs.held.clear()
    fake.jobs.next_id = 1001
    edited = job("001", {"cluster_001": ["chess", "shogi"]})
    first = fake.jobs.make({**edited.settings, "access_control_list": [_entry_of_operators()]})
    third = fake.jobs.make(THREE.settings)
    fake.jobs.make(
        with_ids(job("bronze", {}, calls=["001", "003"]).settings, {"001": first.job_id, "003": third.job_id})
    )
    fake.jobs.make(edited.settings)
    fake.calls.clear()


def _entry_of_operators() -> dict[str, str]:
    return {"group_name": OPERATORS.principal, "permission_level": OPERATORS.level.value}


@pytest.fixture
def goal(fake: FakeWorkspace) -> Held:
    """What our jobs are after an apply in peace."""
    install(workspace_of(fake))
    result = held(fake)
    assert [part for part, _, _ in result] == ["001", "002", "bronze"]
    return result


def test_a_first_apply_makes_every_job_and_a_second_changes_nothing(fake: FakeWorkspace) -> None:
    workspace = workspace_of(fake)
    plan = plan_of(workspace)
    ids = apply(workspace, plan)
    assert ids == {"001": 1001, "002": 1002, "bronze": 1003}
    tasks = fake.jobs.held[1003].settings["tasks"]
    assert [each["run_job_task"]["job_id"] for each in tasks] == [1001, 1002]
    assert fake.jobs.held[1001].acl[("group_name", "analysts")] == "CAN_VIEW"
    fake.calls.clear()
    assert install(workspace).is_empty
    assert {call.method for call in fake.calls} == {"GET"}


def test_an_old_state_becomes_the_wanted_one(fake: FakeWorkspace, goal: Held) -> None:
    old_state(fake)
    plan = install(workspace_of(fake))
    assert Counter(change.action for change in plan.changes) == {
        JobAction.CREATE: 1,
        JobAction.UPDATE: 2,
        JobAction.DELETE: 1,
        JobAction.REMOVE_DOUBLE: 1,
    }
    assert held(fake) == goal


def test_applying_takes_one_call_for_each_changed_job_and_one_for_changed_permissions(fake: FakeWorkspace) -> None:
    old_state(fake)
    workspace = workspace_of(fake)
    plan = plan_of(workspace)
    fake.calls.clear()
    apply(workspace, plan)
    assert fake.counted() == {
        "POST /api/2.2/jobs/create": 1,
        "POST /api/2.2/jobs/reset": 2,
        "PUT /api/2.0/permissions/jobs/1001": 1,
        "POST /api/2.2/jobs/delete": 2,
    }


def test_looking_takes_a_list_and_two_calls_for_each_of_our_jobs_and_none_for_others(fake: FakeWorkspace) -> None:
    install(workspace_of(fake))
    for number in range(250):
        fake.jobs.make(changed(ONE, name=f"other {number}", tags={}).settings)
    fake.calls.clear()
    plan_of(workspace_of(fake))
    counted = Counter(call.path.rsplit("/", 1)[0] if "permissions" in call.path else call.path for call in fake.calls)
    assert counted == {"/api/2.2/jobs/list": 3, "/api/2.2/jobs/get": 3, "/api/2.0/permissions/jobs": 3}


def test_all_pages_of_a_job_are_read(fake: FakeWorkspace) -> None:
    games = {f"cluster_{number:03d}": [f"game_{number}_{game}" for game in range(11)] for number in range(30)}
    big = job("001", games, parameters=[{"name": "a", "default": "1"}])
    install(workspace_of(fake), [big])
    plan = plan_of(workspace_of(fake), [big])
    assert (plan.is_empty, plan.deployed_games) == (True, 330)
    assert fake.counted()["GET /api/2.2/jobs/get"] == 4


def test_each_call_is_told_before_and_after(fake: FakeWorkspace) -> None:
    steps: list[JobStep] = []
    install(workspace_of(fake), tell=steps.append)
    assert [(step.moment.value, step.call.value, step.part, step.job_id) for step in steps] == [
        ("before", "create", "001", None),
        ("after", "create", "001", 1001),
        ("before", "create", "002", None),
        ("after", "create", "002", 1002),
        ("before", "create", "bronze", None),
        ("after", "create", "bronze", 1003),
    ]


def positions(fake: FakeWorkspace, when: When) -> list[int]:
    """The calls of looking, planning and applying at which something may fail, counted from 1."""
    old_state(fake)
    install(workspace_of(fake))
    # a question has no effect: it makes no difference when its answer is lost
    asked = [number for number, call in enumerate(fake.calls, 1) if when is When.BEFORE or call.method != "GET"]
    assert len(asked) >= 6
    return asked


FAULTS = [
    *((way, When.BEFORE) for way in (Way.THROTTLED, Way.INTERNAL_ERROR, Way.UNAVAILABLE, Way.RESET, Way.SILENT)),
    *((way, When.AFTER) for way in (Way.INTERNAL_ERROR, Way.UNAVAILABLE, Way.RESET, Way.SILENT)),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "when"), FAULTS, ids=lambda value: value.value)
def test_any_call_may_fail_once(fake: FakeWorkspace, goal: Held, way: Way, when: When) -> None:
    for position in positions(fake, when):
        old_state(fake)
        fake.faults.plan(Fault(way, nth=position, when=when))
        install(workspace_of(fake, hurried(OFTEN, way)))
        assert len(fake.faults.happened) == 1, position
        assert held(fake) == goal, position


@pytest.mark.thorough
@pytest.mark.parametrize(("way", "when"), FAULTS, ids=lambda value: value.value)
def test_an_apply_that_a_failing_call_ended_is_finished_by_the_next(
    fake: FakeWorkspace, goal: Held, way: Way, when: When
) -> None:
    for position in positions(fake, when):
        old_state(fake)
        fake.faults.plan(Fault(way, nth=position, when=when))
        with pytest.raises(WorkspaceUnavailable):
            install(workspace_of(fake, hurried(ONCE, way)))
        install(workspace_of(fake))
        assert held(fake) == goal, position
        assert plan_of(workspace_of(fake)).is_empty, position


class Killed(BaseException):
    """The end of a program."""


def test_a_program_may_be_killed_between_any_two_calls(fake: FakeWorkspace, goal: Held) -> None:
    old_state(fake)
    steps: list[JobStep] = []
    install(workspace_of(fake), tell=steps.append)
    for last in range(len(steps)):
        old_state(fake)
        left = iter([None] * last)

        def kill(_: JobStep, left: Iterator[None] = left) -> None:
            if next(left, Killed) is Killed:
                raise Killed

        with pytest.raises(Killed):
            install(workspace_of(fake), tell=kill)
        install(workspace_of(fake))
        assert held(fake) == goal, last


def test_a_create_that_had_its_effect_and_no_answer_is_not_repeated(fake: FakeWorkspace) -> None:
    fake.faults.plan(Fault(Way.RESET, path="jobs/create", when=When.AFTER))
    ids = apply(workspace := workspace_of(fake), plan_of(workspace))
    assert fake.counted()["POST /api/2.2/jobs/create"] == 3
    assert ids == {"001": 1001, "002": 1002, "bronze": 1003}


def test_a_workspace_that_never_answers_ends_the_command_after_some_tries(fake: FakeWorkspace) -> None:
    fake.faults.plan(Fault(Way.UNAVAILABLE, path="jobs/create", times=ALWAYS))
    with pytest.raises(WorkspaceUnavailable, match="asked to create the job Game_Protobufs_wrapper_prod_001"):
        install(workspace_of(fake))
    assert fake.counted()["POST /api/2.2/jobs/create"] == OFTEN.retries + 1


def test_a_double_that_a_lost_answer_left_is_removed_by_the_next_apply(fake: FakeWorkspace) -> None:
    install(workspace_of(fake))
    fake.jobs.make(TWO.settings)
    plan = install(workspace_of(fake))
    assert [(each.part, each.action, each.job_id) for each in plan.changes if each.calls] == [
        ("002", JobAction.REMOVE_DOUBLE, 1004)
    ]
    assert sorted(fake.jobs.held) == [1001, 1002, 1003]


def test_a_job_that_was_deleted_by_hand_is_made_again(fake: FakeWorkspace, goal: Held) -> None:
    del fake.jobs.held[1001]
    plan = install(workspace_of(fake))
    assert {each.part: each.action.value for each in plan.changes} == {
        "001": "create",
        "002": "keep",
        "bronze": "update",
    }
    assert held(fake) == goal


def test_a_job_that_is_deleted_between_plan_and_apply_stops_it_with_a_reason(fake: FakeWorkspace) -> None:
    old_state(fake)
    workspace = workspace_of(fake)
    plan = plan_of(workspace)
    del fake.jobs.held[1001]
    with pytest.raises(ConcurrentChange, match="The job 1001 was deleted since the plan was made"):
        apply(workspace, plan)


def test_a_job_that_is_deleted_twice_is_gone_all_the_same(fake: FakeWorkspace) -> None:
    install(workspace_of(fake))
    workspace = workspace_of(fake)
    plan = plan_of(workspace, [])
    del fake.jobs.held[1003]
    apply(workspace, plan)
    assert fake.jobs.held == {}


def test_what_a_hand_edited_is_named_and_set_right(fake: FakeWorkspace, goal: Held) -> None:
    tasks = fake.jobs.held[1001].settings["tasks"]
    fake.jobs.held[1001].settings["tasks"] = [{**tasks[0], "max_retries": 9}, task("mine", ["x"], "cluster_001")]
    plan = install(workspace_of(fake))
    assert [(each.difference.value, each.subject, each.field) for each in plan.changes[0].details] == [
        ("changed", "task deserialize_chess", "max_retries"),
        ("added", "task deserialize_go", ""),
        ("removed", "task mine", ""),
    ]
    assert held(fake) == goal


def test_jobs_of_others_with_our_name_are_said_and_not_touched(fake: FakeWorkspace) -> None:
    by_hand = fake.jobs.make(changed(ONE, tags={"team": "x"}).settings, user="bob@example.org")
    other = fake.jobs.make(changed(ONE, tags={OWNER_TAG: "dev", PART_TAG: "001"}).settings)
    before = {each.job_id: dict(each.settings) for each in (by_hand, other)}
    plan = install(workspace_of(fake))
    assert [(each.job_id, each.deployment) for each in plan.foreign] == [(1001, ""), (1002, "dev")]
    install(workspace_of(fake), [])
    assert {each.job_id: each.settings for each in fake.jobs.held.values()} == before


def test_a_job_whose_owner_tag_was_removed_is_somebody_elses_from_then_on(fake: FakeWorkspace) -> None:
    install(workspace_of(fake), [ONE])
    del fake.jobs.held[1001].settings["tags"][OWNER_TAG]
    plan = install(workspace_of(fake), [ONE])
    assert [(each.action.value, each.job_id) for each in plan.changes] == [("create", None)]
    assert [each.job_id for each in plan.foreign] == [1001]
    assert sorted(fake.jobs.held) == [1001, 1002]


def test_a_job_whose_part_tag_was_removed_gets_it_back(fake: FakeWorkspace, goal: Held) -> None:
    del fake.jobs.held[1002].settings["tags"][PART_TAG]
    plan = install(workspace_of(fake))
    assert [(each.part, each.action.value) for each in plan.changes if each.calls] == [("002", "update")]
    assert held(fake) == goal


def test_permissions_that_a_hand_added_go_and_the_owner_stays(fake: FakeWorkspace) -> None:
    install(workspace_of(fake), [ONE])
    fake.jobs.held[1001].acl = {("user_name", "bob@example.org"): "IS_OWNER", ("group_name", "all"): "CAN_MANAGE"}
    install(workspace_of(fake), [ONE])
    assert fake.jobs.held[1001].acl == {
        ("user_name", "bob@example.org"): "IS_OWNER",
        ("group_name", "analysts"): "CAN_VIEW",
    }


def test_destroying_removes_our_jobs_and_nothing_else(fake: FakeWorkspace) -> None:
    other = fake.jobs.make(changed(THREE, name="other", tags={"team": "x"}).settings)
    install(workspace_of(fake))
    steps: list[JobStep] = []
    install(workspace_of(fake), [], steps.append)
    assert [step.part for step in steps if step.moment is CallMoment.AFTER] == ["bronze", "002", "001"]
    assert list(fake.jobs.held) == [other.job_id]


def test_a_saved_plan_does_what_the_plan_does(fake: FakeWorkspace, goal: Held) -> None:
    old_state(fake)
    workspace = workspace_of(fake)
    apply(workspace, from_text(to_text(plan_of(workspace), fake.url), fake.url))
    assert held(fake) == goal


def test_the_state_of_the_workspace_is_the_same_however_often_one_looks(fake: FakeWorkspace) -> None:
    install(workspace_of(fake))
    assert plan_of(workspace_of(fake)).state_id == plan_of(workspace_of(fake)).state_id
    before = plan_of(workspace_of(fake)).state_id
    fake.jobs.held[1001].settings["timeout_seconds"] = 5
    assert plan_of(workspace_of(fake)).state_id != before


def test_what_was_made_before_a_refusal_is_found_again(fake: FakeWorkspace) -> None:
    bad = replace(TWO, settings={**TWO.settings, "schedule": {"quartz_cron_expression": "x", "timezone_id": "UTC"}})
    with pytest.raises(DemuxError):
        install(workspace_of(fake), [ONE, bad, CALLER])
    plan = install(workspace_of(fake))
    assert {each.part: each.action.value for each in plan.changes} == {
        "001": "keep",
        "002": "create",
        "bronze": "create",
    }
