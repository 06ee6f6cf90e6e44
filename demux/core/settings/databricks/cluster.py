"""The job clusters and their machines, and what one cluster has of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from demux.core.settings.databricks.values import EMAIL, Principal, Tags, Token, matching, require_no_secret
from demux.core.settings.types import Section, rule
from demux.core.tables import TABLE_CONF

# how the Clusters API says that there is no worker
SINGLE_NODE_CONF: Mapping[str, str] = {"spark.databricks.cluster.profile": "singleNode", "spark.master": "local[*]"}
# what a machine may do, which no pool says
IDENTITIES = frozenset({"instance_profile", "service_account"})
FirstOnDemand = Annotated[int, Field(ge=0, le=100_000)]


class AwsAvailability(Enum):
    """Which machines AWS gives."""

    ON_DEMAND = "ON_DEMAND"
    SPOT = "SPOT"
    SPOT_WITH_FALLBACK = "SPOT_WITH_FALLBACK"


class AzureAvailability(Enum):
    """Which machines Azure gives."""

    ON_DEMAND = "ON_DEMAND_AZURE"
    SPOT = "SPOT_AZURE"
    SPOT_WITH_FALLBACK = "SPOT_WITH_FALLBACK_AZURE"


class GcpAvailability(Enum):
    """Which machines Google Cloud gives."""

    ON_DEMAND = "ON_DEMAND_GCP"
    PREEMPTIBLE = "PREEMPTIBLE_GCP"
    PREEMPTIBLE_WITH_FALLBACK = "PREEMPTIBLE_WITH_FALLBACK_GCP"


_InstanceProfile = Annotated[
    str,
    matching(
        r"arn:aws[\w-]*:iam::\d+:instance-profile/\S+",
        "an ARN such as arn:aws:iam::123456789012:instance-profile/demux",
    ),
]
_ServiceAccount = Annotated[str, matching(EMAIL, "the e-mail address of a service account")]


def _price(dollars: float) -> float:
    if dollars <= 0 and dollars != _PRICE_ON_DEMAND:
        raise ValueError("expected more than 0, or -1 for the price on demand")
    return dollars


_PRICE_ON_DEMAND = -1


class AwsSettings(Section):
    """Machines of AWS."""

    availability: AwsAvailability | None = Field(
        default=None, description="ON_DEMAND, SPOT, or SPOT_WITH_FALLBACK: on demand where no spot machine is left."
    )
    first_on_demand: FirstOnDemand | None = Field(
        default=None, description="So many machines are on demand in any case, the driver first."
    )
    spot_price_percent: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="Most that a spot machine may cost, in percent of one on demand."
    )
    zone: Token | None = Field(default=None, description="Availability zone, such as us-west-2a, or auto.")
    instance_profile: _InstanceProfile | None = Field(
        default=None, description="ARN of the instance profile, on dedicated clusters alone."
    )

    @model_validator(mode="after")
    def _consistent(self) -> AwsSettings:
        if self.spot_price_percent is not None and self.availability is AwsAvailability.ON_DEMAND:
            raise rule("spot_price_percent is for availability SPOT or SPOT_WITH_FALLBACK")
        return self


class AzureSettings(Section):
    """Machines of Azure."""

    availability: AzureAvailability | None = Field(
        default=None,
        description="ON_DEMAND_AZURE, SPOT_AZURE, or SPOT_WITH_FALLBACK_AZURE: on demand where no spot is left.",
    )
    first_on_demand: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="So many machines are on demand in any case, the driver first; 1 or more."
    )
    spot_price: Annotated[float, AfterValidator(_price)] | None = Field(
        default=None, description="Most dollars an hour for a spot machine; -1: up to the price on demand."
    )

    @model_validator(mode="after")
    def _consistent(self) -> AzureSettings:
        if self.spot_price is not None and self.availability is AzureAvailability.ON_DEMAND:
            raise rule("spot_price is for availability SPOT_AZURE or SPOT_WITH_FALLBACK_AZURE")
        return self


class GcpSettings(Section):
    """Machines of Google Cloud."""

    availability: GcpAvailability | None = Field(
        default=None,
        description="ON_DEMAND_GCP, PREEMPTIBLE_GCP, or PREEMPTIBLE_WITH_FALLBACK_GCP: on demand where none is left.",
    )
    first_on_demand: FirstOnDemand | None = Field(
        default=None, description="So many machines are on demand in any case, the driver first."
    )
    zone: Token | None = Field(default=None, description="Zone, or HA (highest availability) or AUTO.")
    service_account: _ServiceAccount | None = Field(
        default=None, description="E-mail address of the machines' service account, on dedicated clusters alone."
    )


def given_keys(machines: AwsSettings | AzureSettings | GcpSettings) -> list[str]:
    """Return the keys that have a value."""
    return [name for name in type(machines).model_fields if getattr(machines, name) is not None]


_FOLDER = re.compile(
    r"(?:/Volumes(?:/[^/\s{}$]+){4,}|dbfs:(?!/Volumes/)(?:/[^/\s{}$]+)+|s3://[^/\s{}$]+(?:/[^/\s{}$]+)*)/?"
)
_SCRIPT = re.compile(
    r"/Volumes(?:/[^/{}$]+){4,}|/Workspace(?:/[^/{}$]+)+"
    r"|(?:(?:s3|gs)://[^/\s{}$@]+|abfss://[^/\s{}$@]+@[^/\s{}$@]+)(?:/[^/\s{}$]+)+"
)
# a list of the workspace has them in this form; `latest` or `17.3 LTS` are none
_RUNTIME = re.compile(r"[0-9A-Za-z._-]+-scala\d+\.\d+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _runtime(version: str) -> str:
    if not _RUNTIME.fullmatch(version):
        raise ValueError("expected a runtime such as 17.3.x-scala2.13 (`databricks clusters spark-versions`)")
    if "-photon-" in version:
        raise ValueError("take -photon- out of it, and set photon: true")
    return version


def _conf(conf: Mapping[str, str]) -> Mapping[str, str]:
    if ours := sorted(conf.keys() & TABLE_CONF.keys()):
        raise ValueError(f"{', '.join(ours)}: what tables hold depends on these, and they are as demux sets them")
    if alone := sorted(conf.keys() & SINGLE_NODE_CONF.keys()):
        raise ValueError(f"{', '.join(alone)}: for a cluster of a single node set workers: 0")
    require_no_secret(conf)
    return conf


def _environment(variables: Mapping[str, str]) -> Mapping[str, str]:
    if wrong := sorted(name for name in variables if not _VARIABLE.fullmatch(name)):
        raise ValueError(f"{', '.join(wrong)}: expected letters, digits and _, as a variable of a shell has")
    require_no_secret(variables)
    return variables


def _has_dots(path: str) -> bool:
    return not {".", ".."}.isdisjoint(path.split("/"))


def _script(path: object) -> str:
    if not isinstance(path, str) or not _SCRIPT.fullmatch(path) or _has_dots(path):
        raise ValueError(
            "expected a file below /Volumes or /Workspace, or s3://bucket/…, gs://bucket/… or "
            "abfss://container@account.dfs.core.windows.net/…"
        )
    return path


def _log_folder(path: str) -> str:
    if not _FOLDER.fullmatch(path) or _has_dots(path):
        raise ValueError("expected a folder in a volume, such as /Volumes/main/ops/logs/demux, or of dbfs:/ or s3://")
    return path.rstrip("/")


# as the Clusters API calls what has a shorter key here
_NODES_OF_THE_API = {
    "autoscale": "it is min_workers and max_workers here",
    "num_workers": "it is workers here",
    "runtime_engine": "it is photon here: true or false",
}
_CLUSTERS_OF_THE_API = {
    "budget_policy_id": "it is for serverless compute, as serverless.budget_policy_id; clusters have tags",
    "cluster_log_conf": "it is log_path here",
    "custom_tags": "it is tags here",
    "data_security_mode": "it is databricks.compute here: standard or dedicated",
    "spark_env_vars": "it is environment here",
    **{f"{cloud}_attributes": f"it is {cloud} here" for cloud in ("aws", "azure", "gcp")},
}
# what no single cluster has of its own
_OF_ALL_CLUSTERS = (
    "aws azure environment gcp init_scripts log_path policy_id s3_region single_user spark_conf spark_version tags"
)


class NodeSettings(Section):
    """Machines of a cluster, and how many."""

    hints: ClassVar[Mapping[str, str]] = _NODES_OF_THE_API | dict.fromkeys(
        _OF_ALL_CLUSTERS.split(), "set it below databricks.cluster, for all clusters alike"
    )

    node_type: Token | None = Field(
        default=None, description="Node type of the cloud, such as i3.xlarge. Default: what the policy or pool says."
    )
    driver_node_type: Token | None = Field(default=None, description="Node type of the driver. Default: node_type.")
    instance_pool_id: Token | None = Field(
        default=None, description="Id of the instance pool of the workers, in place of node_type."
    )
    driver_instance_pool_id: Token | None = Field(
        default=None, description="Id of the instance pool of the driver. Default: instance_pool_id."
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
    photon: bool | None = Field(
        default=None, description="Whether Photon runs the queries. Default: what the runtime or the policy says."
    )

    @model_validator(mode="after")
    def _consistent(self) -> NodeSettings:
        if (self.min_workers is None) != (self.max_workers is None):
            raise rule("min_workers and max_workers belong together")
        if self.min_workers is not None and self.max_workers is not None:
            if self.workers is not None:
                raise rule("workers, or min_workers and max_workers, not both")
            if self.max_workers <= self.min_workers:
                raise rule("max_workers must be more than min_workers")
        if self.instance_pool_id is not None and (self.node_type or self.driver_node_type):
            raise rule("node_type and driver_node_type, or instance_pool_id, not both: a pool has one kind of machine")
        if self.driver_instance_pool_id is not None and self.instance_pool_id is None:
            raise rule("driver_instance_pool_id needs instance_pool_id")
        return self


class ClusterSettings(NodeSettings):
    """The job clusters that the games share."""

    hints: ClassVar[Mapping[str, str]] = _NODES_OF_THE_API | _CLUSTERS_OF_THE_API

    spark_version: Annotated[str, AfterValidator(_runtime)] = Field(
        default="17.3.x-scala2.13", description="Databricks Runtime, as the Clusters API has it. Default: 17.3 LTS."
    )
    policy_id: Token | None = Field(default=None, description="Cluster policy; its defaults are applied.")
    single_user: Principal | None = Field(
        default=None,
        description="For whom a dedicated cluster is: a user, a group or a service principal. Default: whom the job "
        "runs as.",
    )
    spark_conf: Annotated[Mapping[str, str], AfterValidator(_conf)] = Field(
        default={}, description="Further Spark properties; a secret only as {{secrets/SCOPE/KEY}}."
    )
    environment: Annotated[Mapping[str, str], AfterValidator(_environment)] = Field(
        default={}, description="Environment variables; a secret only as {{secrets/SCOPE/KEY}}."
    )
    init_scripts: tuple[Annotated[str, BeforeValidator(_script)], ...] = Field(
        default=(), description="Scripts that each node runs before Spark starts: files of a volume or of a store."
    )
    log_path: Annotated[str, AfterValidator(_log_folder)] | None = Field(
        default=None, description="Folder for the logs of the clusters: of a volume, dbfs:/ or s3://. Default: none."
    )
    s3_region: Token | None = Field(
        default=None, description="Region of the buckets of `log_path` and `init_scripts`, such as eu-west-1."
    )
    tags: Tags = Field(default={}, description="Tags of the clusters alone; they get those of the jobs as well.")
    aws: AwsSettings = Field(default=AwsSettings(), description="How machines are bought on AWS.")
    azure: AzureSettings = Field(default=AzureSettings(), description="How machines are bought on Azure.")
    gcp: GcpSettings = Field(default=GcpSettings(), description="How machines are bought on Google Cloud.")

    @model_validator(mode="after")
    def _consistent_machines(self) -> ClusterSettings:
        clouds = {name: keys for name in ("aws", "azure", "gcp") if (keys := given_keys(getattr(self, name)))}
        if len(clouds) > 1:
            raise rule(f"{' and '.join(clouds)}: a workspace is in one cloud")
        bought = [f"{name}.{key}" for name, keys in clouds.items() for key in keys if key not in IDENTITIES]
        if bought and self.instance_pool_id is not None:
            raise rule(f"{', '.join(bought)}: not for instance_pool_id, as the pool says how its machines are bought")
        in_s3 = [path for path in (self.log_path or "", *self.init_scripts) if path.startswith("s3:")]
        if (self.s3_region is None) == bool(in_s3):
            raise rule("log_path and init_scripts of s3:// need s3_region, and no others do")
        return self
