"""Settings of the Databricks workspace: the jobs, their clusters, and who may do what with them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from demux.core.secrets import is_secret_option
from demux.core.settings.spark_conf import TABLE_CONF
from demux.core.settings.types import Section, rule

MAX_TASKS_PER_JOB = 1000
# a job may have 25, and three are ours
_MAX_TAGS = 22
_MAX_WEBHOOKS = 3
# what the platform itself puts on a cluster, and what says whose a job is
_RESERVED_TAGS = frozenset(
    {"vendor", "creator", "clusterid", "clustername", "jobid", "name", "resourceclass", "runname"}
)
_RESERVED_PREFIXES = ("protobuf_demux", "databricks", "aws:")
# the access mode for several users, as the settings, the user interface and the Clusters API name it
_STANDARD_MODES = frozenset({"shared", "standard", "user_isolation", "data_security_mode_standard"})
_TAG = re.compile(r"[\w +\-=.:/@]*", re.ASCII)
_PART = re.compile(r"_(n?\d+|continuous|maintain)$")
_SECRET_IN_CONF = re.compile(r"\{\{secrets/[^/{}]+/[^/{}]+\}\}")
_REMOTE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^/]+(/|$)")


class Granularity(Enum):
    """What one task of a job runs."""

    GAME = "game"
    CLUSTER = "cluster"


class SecurityMode(Enum):
    """Who may use a cluster; with several users, each shut off from the others, our tasks cannot run."""

    DEDICATED = "dedicated"


class ScheduleKind(Enum):
    """What starts a run."""

    NONE = "none"
    CRON = "cron"
    CONTINUOUS = "continuous"
    FILE_ARRIVAL = "file_arrival"
    TABLE_UPDATE = "table_update"


class TableCondition(Enum):
    """How many of the tables must have changed before a run starts."""

    ANY = "any"
    ALL = "all"


class PrincipalKind(Enum):
    """What a principal is; the values are fields of the Permissions API."""

    GROUP = "group_name"
    SERVICE_PRINCIPAL = "service_principal_name"
    USER = "user_name"


class AccessLevel(Enum):
    """What a principal may do with a job; the values are the Permissions API's own."""

    CAN_MANAGE = "CAN_MANAGE"
    CAN_MANAGE_RUN = "CAN_MANAGE_RUN"
    CAN_VIEW = "CAN_VIEW"


def _name(name: str) -> str:
    if _PART.search(name):
        raise ValueError("must not end as the further jobs of a deployment do: _001, _n001, _continuous or _maintain")
    return name


def _conf(conf: Mapping[str, str]) -> Mapping[str, str]:
    if ours := sorted(conf.keys() & TABLE_CONF.keys()):
        raise ValueError(f"{', '.join(ours)}: what tables hold depends on these, and they are as demux sets them")
    literal = [name for name, value in conf.items() if is_secret_option(name) and not _SECRET_IN_CONF.fullmatch(value)]
    if literal:
        raise ValueError(f"{', '.join(sorted(literal))} must be {{{{secrets/SCOPE/KEY}}}}, never the secret itself")
    return conf


def _security_mode(mode: object) -> object:
    if isinstance(mode, str) and mode.lower() in _STANDARD_MODES:
        raise ValueError(
            "the tasks are not tried yet on clusters in shared (standard) access mode; "
            "take dedicated, whose single user may be a group"
        )
    return mode


def _quartz(text: str) -> str:
    fields = text.split()
    if len(fields) not in {6, 7} or not re.fullmatch(r"[\w ,\-*/?#]+", " ".join(fields), re.ASCII):
        raise ValueError("expected a Quartz expression of 6 or 7 fields, seconds first, such as 0 0 5 * * ?")
    if (fields[3] == "?") == (fields[5] == "?"):
        raise ValueError("expected ? for the day of the month or for the day of the week, and not for both")
    return " ".join(fields)


def _arrival(url: str) -> str:
    if not is_remote(url):
        raise ValueError("expected a folder of an external location, such as s3://bucket/folder/, or /Volumes/…")
    return f"{url.rstrip('/')}/"


def _table(name: str) -> str:
    parts = name.split(".")
    if len(parts) != 3 or not all(re.fullmatch(r"[^\s/`{}$]{1,255}", part) for part in parts):
        raise ValueError("expected catalog.schema.table")
    return name


def _email(text: str) -> str:
    if not re.fullmatch(r"[^@\s{}$]+@[^@\s{}$]+", text):
        raise ValueError("expected an e-mail address")
    return text


def _principal(name: str) -> str:
    if not name.strip() or any(c in "{}$" or unicodedata.category(c) in {"Cc", "Cs"} for c in name):
        raise ValueError("expected the name of a principal")
    return name


def _tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in tags.items():
        lower = key.lower()
        if lower in _RESERVED_TAGS or lower.startswith(_RESERVED_PREFIXES):
            raise ValueError(f"the tag {key} is reserved")
        if not 1 <= len(key) <= 127 or len(value) > 255 or not _TAG.fullmatch(key + value):
            raise ValueError(
                f"the tag {key}: expected up to 127 (value: 255) letters, digits, spaces and + - = . _ : / @"
            )
    if len(tags) > _MAX_TAGS:
        raise ValueError(f"expected {_MAX_TAGS} tags or fewer")
    return tags


def _wheel_folder(path: str) -> str:
    root, *parts = path.rstrip("/").split("/")
    top, below = "".join(parts[:1]), parts[1:]
    least = None if root else {"Volumes": 3, "Workspace": 1}.get(top)
    legal = all(part not in {"", ".", ".."} and re.fullmatch(r"[^\x00-\x1f\\{}$*?]+", part) for part in below)
    if least is None or len(below) < least or not legal:
        raise ValueError("expected a folder such as /Volumes/catalog/schema/volume/wheels or /Workspace/Shared/wheels")
    return path.rstrip("/")


def is_remote(place: str) -> bool:
    """Return whether a cluster of a workspace reaches the path or URI: a URI of cloud storage, or a volume."""
    return _REMOTE.match(place) is not None or re.match(r"/Volumes(/[^/]+){3}(/|$)", place) is not None


Principal = Annotated[str, AfterValidator(_principal)]
Email = Annotated[str, AfterValidator(_email)]
Emails = tuple[Email, ...]
Webhooks = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")], ...], Field(max_length=_MAX_WEBHOOKS)
]
# what needs no quotes in SQL
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,255}$")]
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
Seconds = Annotated[int, Field(ge=0, le=30 * 24 * 3600)]
Pause = Annotated[int, Field(ge=60, le=24 * 3600)]


class ClusterSettings(Section):
    """The job clusters that the games share; all are made alike."""

    spark_version: Token = Field(
        default="17.3.x-scala2.13", description="Databricks Runtime, as the Clusters API has it. Default: 17.3 LTS."
    )
    node_type: Token | None = Field(
        default=None, description="Node type of the cloud, such as i3.xlarge. Needed where no policy gives it."
    )
    workers: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        default=None, description="Workers of a cluster; 0: a single node. Default: 1, unless it scales by itself."
    )
    min_workers: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="Least workers of a cluster that scales by itself, in place of `workers`."
    )
    max_workers: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        default=None, description="Most workers of a cluster that scales by itself."
    )
    security_mode: Annotated[SecurityMode, BeforeValidator(_security_mode)] = Field(
        default=SecurityMode.DEDICATED,
        description="Access mode. dedicated: for whom the job runs as, or for a group (SINGLE_USER). The tasks cannot "
        "run in another mode.",
    )
    policy_id: Token | None = Field(default=None, description="Cluster policy; its defaults are applied.")
    spark_conf: Annotated[Mapping[str, str], AfterValidator(_conf)] = Field(
        default={}, description="Further Spark properties; a secret only as {{secrets/SCOPE/KEY}}."
    )

    @model_validator(mode="after")
    def _consistent(self) -> ClusterSettings:
        if (self.min_workers is None) != (self.max_workers is None):
            raise rule("min_workers and max_workers belong together")
        if self.min_workers is not None and self.max_workers is not None:
            if self.workers is not None:
                raise rule("workers, or min_workers and max_workers, not both")
            if self.max_workers <= self.min_workers:
                raise rule("max_workers must be more than min_workers")
        return self


class ScheduleSettings(Section):
    """What starts a run of the jobs."""

    kind: ScheduleKind = Field(
        default=ScheduleKind.NONE,
        description="none: by hand, or by another job. cron: at times. continuous: again as soon as a run ends. "
        "file_arrival: when files come under `url`. table_update: when `tables` change.",
    )
    cron: Annotated[str, AfterValidator(_quartz)] | None = Field(
        default=None, description="Quartz expression, seconds first, such as 0 0 5 * * ? for five in the morning."
    )
    timezone: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_+/-]{0,63}$")] = Field(
        default="UTC", description="Time zone of `cron`, such as Europe/Berlin."
    )
    url: Annotated[str, AfterValidator(_arrival)] | None = Field(
        default=None, description="Folder of an external location, or of a volume, to watch for files."
    )
    tables: tuple[Annotated[str, AfterValidator(_table)], ...] = Field(
        default=(), description="Tables to watch, each catalog.schema.table."
    )
    condition: TableCondition = Field(
        default=TableCondition.ANY, description="Whether any or all of the tables must have changed."
    )
    min_interval_s: Pause | None = Field(
        default=None, description="Least seconds between two runs that files or tables start, 60 or more."
    )
    quiet_s: Pause | None = Field(
        default=None, description="Seconds without further files or changes before a run starts, 60 or more."
    )
    paused: bool = Field(default=False, description="Keep the schedule, and start nothing by it.")

    @model_validator(mode="after")
    def _consistent(self) -> ScheduleSettings:
        kind = self.kind
        waits = kind in {ScheduleKind.FILE_ARRIVAL, ScheduleKind.TABLE_UPDATE}
        given = (
            ("cron", self.cron is not None, kind is ScheduleKind.CRON),
            ("url", self.url is not None, kind is ScheduleKind.FILE_ARRIVAL),
            ("tables", bool(self.tables), kind is ScheduleKind.TABLE_UPDATE),
        )
        waiting = (("min_interval_s", self.min_interval_s), ("quiet_s", self.quiet_s))
        wrong = [f"kind {kind.value} needs {name}" for name, is_given, needed in given if needed and not is_given]
        wrong += [f"{name} is not for kind {kind.value}" for name, is_given, needed in given if is_given and not needed]
        wrong += [f"{name} is not for kind {kind.value}" for name, value in waiting if value is not None and not waits]
        if wrong:
            raise rule("; ".join(wrong))
        return self


class NotificationSettings(Section):
    """Who is notified of runs."""

    emails_on_start: Emails = Field(default=(), description="E-mail addresses to tell when a run starts.")
    emails_on_success: Emails = Field(default=(), description="E-mail addresses to tell when a run succeeds.")
    emails_on_failure: Emails = Field(default=(), description="E-mail addresses to tell when a run fails.")
    webhooks_on_start: Webhooks = Field(
        default=(), description="Ids of the workspace's notification destinations to call when a run starts, 3 at most."
    )
    webhooks_on_success: Webhooks = Field(default=(), description="Ids to call when a run succeeds, 3 at most.")
    webhooks_on_failure: Webhooks = Field(default=(), description="Ids to call when a run fails, 3 at most.")


class RunAsSettings(Section):
    """Whom the jobs run as."""

    user: Email | None = Field(default=None, description="E-mail address of the user. Default: who owns the jobs.")
    service_principal: Principal | None = Field(
        default=None, description="Application id of the service principal, in place of `user`."
    )

    @model_validator(mode="after")
    def _consistent(self) -> RunAsSettings:
        if self.user is not None and self.service_principal is not None:
            raise rule("user or service_principal, not both")
        return self


class PermissionSettings(Section):
    """Who may see, run or manage the jobs, beside their owner."""

    groups: Mapping[Principal, AccessLevel] = Field(
        default={}, description="By name of the group, {name: level}: CAN_VIEW, CAN_MANAGE_RUN or CAN_MANAGE."
    )
    users: Mapping[Email, AccessLevel] = Field(default={}, description="By e-mail address.")
    service_principals: Mapping[Principal, AccessLevel] = Field(default={}, description="By application id.")


class DatabricksSettings(Section):
    """The jobs in a Databricks workspace that run everything."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$"), AfterValidator(_name)] | None = Field(
        default=None,
        description="Name of the deployment: its jobs are Game_Protobufs_wrapper_<name>, and `demux plan`, `apply` and "
        "`destroy` are about them. Default: none, everything runs on this machine.",
    )
    granularity: Granularity | None = Field(
        default=None,
        description="game: one task for each game. cluster: one task for each cluster, with all its games. Default: "
        "game; with run.engine: fleet cluster, and nothing else.",
    )
    tasks_per_job: int = Field(
        default=MAX_TASKS_PER_JOB,
        ge=3,
        le=MAX_TASKS_PER_JOB,
        description="Most tasks of one job; more games make more jobs, and bronze's job starts them.",
    )
    cluster: ClusterSettings = Field(default=ClusterSettings(), description="The job clusters, all made alike.")
    schedule: ScheduleSettings = Field(default=ScheduleSettings(), description="What starts a run.")
    notifications: NotificationSettings = Field(
        default=NotificationSettings(), description="Who gets notifications of the runs."
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
    tags: Annotated[Mapping[str, str], AfterValidator(_tags)] = Field(
        default={}, description="Further tags of the jobs; clusters get them as well."
    )
    wheel_path: Annotated[str, AfterValidator(_wheel_folder)] | None = Field(
        default=None,
        description="Folder for the wheel, in a volume or below /Workspace. Who may write there decides what runs.",
    )
    catalog: Identifier | None = Field(
        default=None, description="Catalog of the tables in Unity Catalog. Default: none, tables are known by path."
    )
    bronze_schema: Identifier = Field(
        default="bronze", description="Schema of bronze, quarantine and the control tables."
    )
    silver_schema: Identifier = Field(
        default="silver", description="Schema of the games' tables; another one than bronze's."
    )
    auto_apply: bool = Field(
        default=False, description="Whether a last task adds the games that were discovered to the jobs by itself."
    )

    @model_validator(mode="after")
    def _consistent(self) -> DatabricksSettings:
        wrong = []
        if self.catalog is not None and self.silver_schema.lower() == self.bronze_schema.lower():
            # a game may be called bronze, and grants on games' tables must not reach bronze
            wrong.append("silver_schema must not be bronze_schema")
        if self.name is not None:
            wrong += self._missing()
        if wrong:
            raise rule("; ".join(wrong))
        return self

    def _missing(self) -> list[str]:
        wrong = []
        if self.cluster.node_type is None and self.cluster.policy_id is None:
            wrong.append("name needs cluster.node_type or cluster.policy_id")
        if self.wheel_path is None:
            wrong.append("name needs wheel_path")
        return wrong
