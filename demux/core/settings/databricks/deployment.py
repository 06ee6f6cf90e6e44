"""The settings of a deployment: its jobs, and what they run on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from demux.core.settings.databricks.access import LoginSettings, PermissionSettings, RunAsSettings
from demux.core.settings.databricks.cluster import ClusterSettings, NodeSettings
from demux.core.settings.databricks.compute import Compute, ServerlessSettings, compute_of, refused_settings
from demux.core.settings.databricks.schedule import (
    HealthSettings,
    NotificationSettings,
    ScheduleSettings,
    missing_limits,
)
from demux.core.settings.databricks.values import MAX_CLUSTER_TAGS, Seconds, Tags, WheelFolder
from demux.core.settings.types import Section, rule

MAX_TASKS_PER_JOB = 1000
_PART = re.compile(r"_(n?\d+|continuous|maintain)$")

_PACKED = re.compile(r"cluster_[0-9]{3,}")

ClusterName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,88}$")]


class Granularity(Enum):
    """What one task of a job runs."""

    GAME = "game"
    CLUSTER = "cluster"


def is_packed(cluster: str) -> bool:
    """Return whether the plan itself may name a cluster so."""
    return _PACKED.fullmatch(cluster) is not None


def _name(name: str) -> str:
    if _PART.search(name):
        raise ValueError("must not end as the further jobs of a deployment do: _001, _n001, _continuous or _maintain")
    return name


# as the Jobs API calls what has another key here, or none
_NAMES_OF_THE_API: Mapping[str, str] = {
    "continuous": "set schedule.kind: continuous",
    "email_notifications": "it is notifications.emails_on_… here",
    "environment_key": "it is given to each task; set serverless.environment_version",
    "environments": "they are made for the wheel; set serverless.environment_version",
    "existing_cluster_id": "jobs have clusters of their own: describe them by cluster, or set compute: serverless",
    "git_source": "a job of wheels has no Git source, as that is for notebooks, Python files, dbt and SQL; check out "
    "the branch, tag or commit, and run `demux apply` there, which builds the wheel from it",
    "job_clusters": "describe them by cluster, and single ones by clusters",
    "performance_target": "it is serverless.performance here",
    "trigger": "set schedule.kind: file_arrival or table_update",
    "webhook_notifications": "it is notifications.webhooks_on_… here",
}


class DatabricksSettings(Section):
    """The jobs in a Databricks workspace that run everything."""

    hints: ClassVar[Mapping[str, str]] = _NAMES_OF_THE_API

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$"), AfterValidator(_name)] | None = Field(
        default=None,
        description="Name of the deployment: its jobs are Game_Protobufs_wrapper_<name>, and `demux plan`, `apply` and "
        "`destroy` are about them. Default: none, everything runs on this machine.",
    )
    granularity: Granularity | None = Field(
        default=None,
        description="game: one task for each game. cluster: one task for each cluster, with all its games. Default: "
        "game; with run.engine: fleet or compute: serverless cluster, and nothing else.",
    )
    tasks_per_job: int = Field(
        default=MAX_TASKS_PER_JOB,
        ge=3,
        le=MAX_TASKS_PER_JOB,
        description="Most tasks of one job; more games make more jobs, and bronze's job starts them.",
    )
    compute: Compute | None = Field(
        default=None,
        description="What the tasks run on. serverless: no clusters. standard: job clusters in standard access mode "
        "(USER_ISOLATION). dedicated: job clusters of one user or group (SINGLE_USER). Default: dedicated where "
        "`cluster` or `clusters` say anything, else serverless.",
    )
    serverless: ServerlessSettings = Field(default=ServerlessSettings(), description="Serverless compute.")
    cluster: ClusterSettings = Field(
        default=ClusterSettings(), description="The job clusters, made alike but for `clusters`."
    )
    clusters: Mapping[ClusterName, NodeSettings] = Field(
        default={},
        description="Machines of single clusters, {name: {node_type: …, workers: …}}: bronze, maintain, or one that "
        "games.pinned names; what one leaves out is as in `cluster`.",
    )
    schedule: ScheduleSettings = Field(default=ScheduleSettings(), description="What starts a run.")
    notifications: NotificationSettings = Field(
        default=NotificationSettings(), description="Who gets notifications of the runs."
    )
    health: HealthSettings = Field(
        default=HealthSettings(), description="From when on a run is too slow, or its streams are too far behind."
    )
    login: LoginSettings = Field(
        default=LoginSettings(), description="How the commands log in; a task has the login of whom the job runs as."
    )
    retries: int = Field(default=2, ge=0, le=100, description="Further tries of a task that failed.")
    retry_interval_s: Seconds = Field(default=60, description="Seconds between two tries of a task.")
    task_timeout_s: Seconds = Field(default=0, description="Seconds after which a task is ended; 0: never.")
    job_timeout_s: Seconds = Field(default=0, description="Seconds after which a run is ended; 0: never.")
    queue: bool = Field(
        default=True, description="Whether a run that comes while another is under way waits, or else is skipped."
    )
    run_as: RunAsSettings = Field(default=RunAsSettings(), description="Whom the jobs run as.")
    permissions: PermissionSettings = Field(
        default=PermissionSettings(), description="Who may see, run or manage the jobs, beside their owner."
    )
    tags: Tags = Field(default={}, description="Further tags of the jobs; clusters get them as well.")
    wheel_path: WheelFolder | None = Field(
        default=None,
        description="Folder for the wheel, in a volume or below /Workspace. Who may write there decides what runs.",
    )
    auto_apply: bool = Field(
        default=False, description="Whether a last task adds the games that were discovered to the jobs by itself."
    )

    @model_validator(mode="after")
    def _consistent(self) -> DatabricksSettings:
        wrong = []
        wrong += missing_limits(self.health, self.notifications)
        wrong += _other_user(self.cluster, self.run_as)
        if (tags := len({*self.tags, *self.cluster.tags})) > MAX_CLUSTER_TAGS:
            wrong.append(f"tags and cluster.tags: a cluster would have {tags}; take out {tags - MAX_CLUSTER_TAGS}")
        if self.name is not None:
            if self.wheel_path is None:
                wrong.append("name needs wheel_path")
            wrong += refused_settings(self.compute_kind, self.cluster, self.clusters, self.serverless)
        if self.compute_kind is Compute.SERVERLESS and self.granularity is Granularity.GAME:
            wrong.append(
                "granularity: game is not for compute: serverless, where each task is paid for by itself; leave it "
                "out, and set run.streams_per_cluster: 1 for a task of each game"
            )
        if wrong:
            raise rule("; ".join(wrong))
        return self

    @property
    def compute_kind(self) -> Compute:
        """What the tasks run on."""
        return compute_of(self.compute, self.cluster, self.clusters)


def _other_user(cluster: ClusterSettings, run_as: RunAsSettings) -> list[str]:
    """Return a sentence where a dedicated cluster is a user's, and the jobs run as another principal."""
    user, other = cluster.single_user, run_as.user or run_as.service_principal
    # a name without @ may be a group, which the principal is in
    if user is None or other is None or "@" not in user or user.lower() == other.lower():
        return []
    return [f"cluster.single_user is {user}, and the jobs run as {other}: set it to that, to a group, or leave it out"]
