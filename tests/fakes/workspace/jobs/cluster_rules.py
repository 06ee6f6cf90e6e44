"""What the server refuses of a job's clusters."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_ATTRIBUTES = frozenset({"aws_attributes", "azure_attributes", "gcp_attributes"})
_SINGLE = {"spark.databricks.cluster.profile": "singleNode"}


@dataclass(slots=True)
class Compute:
    """What clusters may be made of.

    Attributes:
        node_types: the node types there are; None = every one.
        spark_versions: the runtimes there are; None = every one.
        policies: the cluster policies by id, as their definitions have them: an element for each path, such as
            `spark_conf.spark.speculation: {type: fixed, value: "true"}`.
        pools: the instance pools there are, by id; None = every one.
        budget_policies: the serverless budget policies there are; None = every one.
        serverless: whether the workspace has serverless compute.
        classic: whether it has clusters.
        cloud: aws, azure, or unknown: one whose defaults our table does not know.
    """

    node_types: frozenset[str] | None = None
    spark_versions: frozenset[str] | None = None
    policies: dict[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    pools: frozenset[str] | None = None
    budget_policies: frozenset[str] | None = None
    serverless: bool = True
    classic: bool = True
    cloud: str = "aws"

    def problems(self, cluster: Mapping[str, Any]) -> Iterator[str]:
        """Everything that is wrong with a `new_cluster`, as sentences."""
        if not self.classic:
            yield "Only serverless compute is supported in the workspace."
        yield from _size(cluster)
        yield from self._pools(cluster)
        yield from _per_cloud(cluster)
        if not {"node_type_id", "instance_pool_id", "policy_id"} & cluster.keys():
            yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.node_type_id"
        yield from self._unknown(cluster)
        yield from self._against_policy(cluster)

    def filled(self, cluster: Mapping[str, Any]) -> dict[str, Any]:
        """The cluster with what its policy adds: fixed values always, defaults where they are asked for."""
        result = copy.deepcopy(dict(cluster))
        for path, element in self.policies.get(str(cluster.get("policy_id")), {}).items():
            value = element.get("value") if element.get("type") == "fixed" else None
            if value is None and cluster.get("apply_policy_default_values"):
                value = element.get("defaultValue")
            holder, name = _place(result, path)
            if value is not None:
                holder.setdefault(name, value)
        return result

    def _against_policy(self, cluster: Mapping[str, Any]) -> Iterator[str]:
        for path, element in self.policies.get(str(cluster.get("policy_id")), {}).items():
            holder, name = _place(copy.deepcopy(dict(cluster)), path)
            given = holder.get(name)
            match element.get("type"):
                case "fixed" if given not in (None, element["value"]):
                    yield f'Validation failed for {path}, must be {element["value"]} (is "{given}")'
                case "forbidden" if given is not None:
                    yield f'Validation failed for {path}, the value must not be present (is "{given}")'
                case "allowlist" if given not in (None, *element["values"]):
                    allowed = ", ".join(map(str, element["values"]))
                    yield f'Validation failed for {path}, the value must be one of {allowed} (is "{given}")'

    def _pools(self, cluster: Mapping[str, Any]) -> Iterator[str]:
        for name in ("instance_pool_id", "driver_instance_pool_id"):
            given = cluster.get(name)
            if given is not None and self.pools is not None and given not in self.pools:
                yield f"Can't find an instance pool with the provided id: {given}."
        for name in ("node_type_id", "driver_node_type_id"):
            if name in cluster and "instance_pool_id" in cluster:
                yield f"The field '{name}' cannot be supplied when an instance pool ID is provided."
        if "driver_instance_pool_id" in cluster and "instance_pool_id" not in cluster:
            yield "The field 'driver_instance_pool_id' cannot be supplied without 'instance_pool_id'."
        for name in _ATTRIBUTES:
            if "instance_pool_id" in cluster and "availability" in cluster.get(name, {}):
                yield f"The field '{name}.availability' cannot be supplied when an instance pool ID is provided."

    def _unknown(self, cluster: Mapping[str, Any]) -> Iterator[str]:
        for name in ("node_type_id", "driver_node_type_id"):
            given = cluster.get(name)
            if given is not None and self.node_types is not None and given not in self.node_types:
                supported = ", ".join(sorted(self.node_types))
                yield f"Node type {given} is not supported. Supported node types: {supported}"
        version = cluster.get("spark_version")
        if not version and "policy_id" not in cluster:
            yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.spark_version"
        if version and self.spark_versions is not None and version not in self.spark_versions:
            yield f"Invalid spark version {version}."


def _place(cluster: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The object that a policy's path is about, made if it is not there, and the name in it."""
    top, _, inner = path.partition(".")
    return (cluster.setdefault(top, {}), inner) if inner else (cluster, top)


def _per_cloud(cluster: Mapping[str, Any]) -> Iterator[str]:
    given = sorted(_ATTRIBUTES & cluster.keys())
    if len(given) > 1:
        yield f"Only one of {', '.join(given)} can be specified."
    if cluster.get("data_security_mode") == "USER_ISOLATION" and "single_user_name" in cluster:
        yield "single_user_name can only be set for clusters in single user access mode."
    for place in (cluster.get("cluster_log_conf", {}), *cluster.get("init_scripts", ())):
        if not {"region", "endpoint"} & place.get("s3", {"region": "-"}).keys():
            yield "Either region or endpoint must be set for an S3 destination."
    if "-photon-" in cluster.get("spark_version", "") and "runtime_engine" in cluster:
        yield "runtime_engine cannot be set for a spark_version that contains -photon-."


def _size(cluster: Mapping[str, Any]) -> Iterator[str]:
    alone = cluster.get("is_single_node") or _SINGLE.items() <= cluster.get("spark_conf", {}).items()
    if not {"num_workers", "autoscale", "policy_id"} & cluster.keys() and not alone:
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.size"
    if cluster.get("num_workers") == 0 and not alone:
        yield "NumWorkers could be 0 only for SingleNode clusters."
    scale = cluster.get("autoscale", {})
    if scale and scale.get("min_workers", 0) > scale.get("max_workers", 0):
        yield "Cluster validation error: min_workers must not be greater than max_workers."
