"""What the server refuses of a job's clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_SINGLE = {"spark.databricks.cluster.profile": "singleNode"}


@dataclass(slots=True)
class Compute:
    """What clusters may be made of.

    Attributes:
        node_types: the node types there are; None = every one.
        spark_versions: the runtimes there are; None = every one.
    """

    node_types: frozenset[str] | None = None
    spark_versions: frozenset[str] | None = None

    def problems(self, cluster: Mapping[str, Any]) -> Iterator[str]:
        """Everything that is wrong with a `new_cluster`, as sentences."""
        yield from _size(cluster)
        if not {"node_type_id", "instance_pool_id", "policy_id"} & cluster.keys():
            yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.node_type_id"
        yield from self._unknown(cluster)

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


def _size(cluster: Mapping[str, Any]) -> Iterator[str]:
    alone = cluster.get("is_single_node") or _SINGLE.items() <= cluster.get("spark_conf", {}).items()
    if not {"num_workers", "autoscale", "policy_id"} & cluster.keys() and not alone:
        yield "Cluster validation error: Missing required field: settings.cluster_spec.new_cluster.size"
    if cluster.get("num_workers") == 0 and not alone:
        yield "NumWorkers could be 0 only for SingleNode clusters."
    scale = cluster.get("autoscale", {})
    if scale and scale.get("min_workers", 0) > scale.get("max_workers", 0):
        yield "Cluster validation error: min_workers must not be greater than max_workers."
