"""The real jobs of a plan in a workspace over HTTP: installed once, they are as wanted, whatever the settings are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demux.core.http.client import Tries
from demux.core.names import names_of
from demux.core.settings.loading.loader import load
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.apply.apply_jobs import apply
from install_workflow.databricks.diff.changes import JobCall, WorkspacePlan, compare
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.databricks.jobs.job import Job
from install_workflow.databricks.jobs.jobs_api import Workspace
from install_workflow.planning.plan import Task
from install_workflow.planning.rebalance import pack
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving

GAMES = [f"game_{number}" for number in range(60)]
BASE = {
    "root": "/Volumes/main/demux/data",
    "databricks.name": "prod",
    "databricks.cluster.node_type": "i3.xlarge",
    "databricks.wheel_path": "/Volumes/main/ops/wheels",
    "run.streams_per_cluster": "10",
}
VARIANTS = {
    "plain": {},
    "by_cluster": {"databricks.granularity": "cluster"},
    "fleet": {"run.engine": "fleet"},
    "split": {"databricks.tasks_per_job": "25"},
    "continuous": {"databricks.schedule.kind": "continuous"},
    "tables": {
        "databricks.schedule.kind": "table_update",
        "databricks.schedule.tables": "[main.demux.source]",
    },
    "everything": {
        "databricks.schedule.kind": "cron",
        "databricks.schedule.cron": "0 0 5 * * ?",
        "databricks.schedule.paused": "true",
        "databricks.notifications.emails_on_failure": "[ops@example.com, dev@example.com]",
        "databricks.run_as.service_principal": "692bc6d0-ffa3-11ed-be56-0242ac120002",
        "databricks.permissions.groups": "{analysts: CAN_VIEW, ops: CAN_MANAGE_RUN}",
        "databricks.tags": "{team: games}",
        "databricks.job_timeout_s": "7200",
        "databricks.queue": "false",
        "databricks.auto_apply": "true",
        "databricks.cluster.policy_id": "ABC",
    },
}
variants = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)


@pytest.fixture
def fake() -> Iterator[FakeWorkspace]:
    with serving(FakeWorkspace()) as workspace:
        yield workspace


@pytest.fixture
def workspace(fake: FakeWorkspace) -> Workspace:
    login = {"host": fake.url, "token": fake.token, "auth_type": "pat"}
    return Workspace(WorkspaceConnection(login, Tries(retries=0, timeout_s=20)))


def jobs(changes: dict[str, str], games: list[str] = GAMES) -> tuple[Job, ...]:
    clusters = pack(games, {}, 10)
    tasks = [Task(game, names_of(game).task_key, clusters[game]) for game in games]
    return make_jobs(tasks, load(None, {}, {**BASE, **changes}), "/Volumes/main/ops/wheels/protobuf_demux.whl")


def plan_of(workspace: Workspace, wanted: tuple[Job, ...]) -> WorkspacePlan:
    return compare(wanted, workspace.find("prod", set()).jobs)


@variants
def test_a_second_apply_changes_nothing(workspace: Workspace, changes: dict[str, str]) -> None:
    apply(workspace, plan_of(workspace, jobs(changes)))
    again = plan_of(workspace, jobs(changes))
    assert [detail for change in again.changes for detail in change.details] == []
    assert again.is_empty


@variants
def test_other_settings_move_games_and_retire_none(
    fake: FakeWorkspace, workspace: Workspace, changes: dict[str, str]
) -> None:
    apply(workspace, plan_of(workspace, jobs({})))
    plan = plan_of(workspace, jobs(changes))
    assert (plan.deployed_games, plan.removed_games) == (60, 0)
    apply(workspace, plan)
    assert plan_of(workspace, jobs(changes)).is_empty
    # the job that people know goes on under its id
    assert fake.jobs.held[1001].settings["name"] == "Game_Protobufs_wrapper_prod"


def test_a_new_game_is_one_call_that_names_it(fake: FakeWorkspace, workspace: Workspace) -> None:
    apply(workspace, plan_of(workspace, jobs({})))
    plan = plan_of(workspace, jobs({}, [*GAMES, "将棋"]))
    added = [detail for change in plan.changes for detail in change.details if detail.reason == "new game"]
    assert [detail.after["games"] for detail in added] == [[names_of("将棋").key]]
    fake.calls.clear()
    apply(workspace, plan)
    assert fake.counted() == {"POST /api/2.2/jobs/reset": 1}


def test_maintenance_goes_when_it_is_to_come_never_and_comes_when_it_is_to_come_again(
    fake: FakeWorkspace, workspace: Workspace
) -> None:
    name = "Game_Protobufs_wrapper_prod_maintain"
    for every, calls in (
        ("1d", [JobCall.CREATE]),
        ("12h", [JobCall.RESET]),
        ("never", [JobCall.DELETE]),
        ("1d", [JobCall.CREATE]),
    ):
        wanted = jobs({"maintain.every": every}, ["chess"])
        plan = plan_of(workspace, wanted)
        assert (plan.removed_games, plan.deployed_games) == (0, len(fake.jobs.held) and 1)
        assert [call for change in plan.changes for call in change.calls if change.name == name] == calls
        apply(workspace, plan)
        assert plan_of(workspace, wanted).is_empty
    apply(workspace, plan_of(workspace, ()))
    assert fake.jobs.held == {}
