"""The compute of the tasks: serverless, or clusters of one of two access modes; and what each of them refuses.

Sources: the platform's pages on limits of serverless compute and of standard compute; docs/databricks.md has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from pydantic import Field

from demux.core.settings.databricks.cluster import ClusterSettings, NodeSettings
from demux.core.settings.databricks.values import Token, matching
from demux.core.settings.types import Section

_ON_SERVERLESS = "compute is serverless, which has no clusters"
_STANDARD_REFUSES = "spark.executor.extraJavaOptions"


class Compute(Enum):
    """What the tasks run on.

    Attributes:
        SERVERLESS: the platform's own machines; a job has environments in place of clusters.
        STANDARD: job clusters in standard access mode (USER_ISOLATION).
        DEDICATED: job clusters of one user or group (SINGLE_USER).
    """

    SERVERLESS = "serverless"
    STANDARD = "standard"
    DEDICATED = "dedicated"


class Performance(Enum):
    """How fast serverless compute starts, and what it costs; the values are fields of the Jobs API."""

    STANDARD = "STANDARD"
    OPTIMIZED = "PERFORMANCE_OPTIMIZED"


_EnvironmentVersion = Annotated[str, matching(r"[1-9][0-9]{0,3}", "the number of a serverless environment, such as 4")]


class ServerlessSettings(Section):
    """Serverless compute."""

    environment_version: _EnvironmentVersion = Field(
        default="4",
        description="Version of the serverless environment: its Python and its libraries. 4: Python 3.12, as Runtime "
        "17.3 LTS has.",
    )
    performance: Performance | None = Field(
        default=None,
        description="PERFORMANCE_OPTIMIZED: starts within seconds. STANDARD: starts within minutes, and costs less. "
        "Default: what the workspace says.",
    )
    budget_policy_id: Token | None = Field(
        default=None, description="Id of the serverless budget (usage) policy, whose tags the cost gets."
    )


def compute_of(asked: Compute | None, cluster: ClusterSettings, clusters: Mapping[str, NodeSettings]) -> Compute:
    """Return the compute of the tasks: as set; else dedicated where a cluster is described, else serverless."""
    if asked is not None:
        return asked
    return Compute.DEDICATED if clusters or changed_keys(cluster) else Compute.SERVERLESS


def refused_settings(
    compute: Compute, cluster: ClusterSettings, clusters: Mapping[str, NodeSettings], serverless: ServerlessSettings
) -> list[str]:
    """Return a sentence for each cluster setting that this compute does not take, with the setting to change."""
    match compute:
        case Compute.SERVERLESS:
            keys = [*(f"cluster.{key}" for key in changed_keys(cluster)), *(f"clusters.{name}" for name in clusters)]
            taken = f"take out {', '.join(keys)}, or set compute: dedicated or standard"
            return [f"{_ON_SERVERLESS}: {taken}"] if keys else []
        case Compute.STANDARD:
            wrong = [*_needs_machines(cluster, clusters), *_refused_by_standard(cluster)]
            return [*wrong, *_not_for_clusters(serverless)]
        case Compute.DEDICATED:
            return [*_needs_machines(cluster, clusters), *_not_for_clusters(serverless)]


def changed_keys(section: Section) -> list[str]:
    """Return the keys below a section that are not as they are by default."""
    found = []
    for name, info in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            found += [f"{name}.{key}" for key in changed_keys(value)]
        elif value != info.default:
            found.append(name)
    return found


def _needs_machines(cluster: ClusterSettings, clusters: Mapping[str, NodeSettings]) -> list[str]:
    if cluster.policy_id:
        return []
    if not (cluster.node_type or cluster.instance_pool_id):
        bare = "cluster.node_type, cluster.instance_pool_id or cluster.policy_id"
        return [f"a job cluster needs {bare}; for no cluster at all set compute: serverless, and take out cluster"]
    # a cluster that sets its driver takes no machines from `cluster`
    half = [name for name, own in clusters.items() if own.driver_node_type and not own.node_type]
    return [f"clusters.{name}.driver_node_type needs clusters.{name}.node_type" for name in half]


def _refused_by_standard(cluster: ClusterSettings) -> list[str]:
    wrong = []
    if _STANDARD_REFUSES in cluster.spark_conf:
        wrong.append(f"cluster.spark_conf: standard access mode refuses {_STANDARD_REFUSES}")
    if "-ml-" in cluster.spark_version or "-gpu-" in cluster.spark_version:
        wrong.append("cluster.spark_version: standard access mode has no runtime for machine learning or GPUs")
    if any(script.startswith("/Workspace/") for script in cluster.init_scripts):
        wrong.append("cluster.init_scripts: standard access mode takes them from volumes and stores, not /Workspace")
    if cluster.aws.instance_profile is not None:
        wrong.append("cluster.aws.instance_profile: no code of a task reaches it in standard access mode")
    if cluster.gcp.service_account is not None:
        wrong.append("cluster.gcp.service_account: no code of a task reaches it in standard access mode")
    if cluster.single_user is not None:
        wrong.append("cluster.single_user is for compute: dedicated")
    return wrong


def _not_for_clusters(serverless: ServerlessSettings) -> list[str]:
    keys = ", ".join(f"serverless.{key}" for key in changed_keys(serverless))
    return [f"{keys}: for compute: serverless alone; take them out where there are clusters"] if keys else []
