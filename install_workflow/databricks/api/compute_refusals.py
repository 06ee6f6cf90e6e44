"""What a workspace says of compute that it does not give, in our words: which setting to change. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_POLICY = re.compile(r"Validation failed for ([\w.]+)", re.IGNORECASE)
# the settings, by the field of the Clusters API that a policy names
_SETTINGS: Mapping[str, str] = {
    "apply_policy_default_values": "policy_id",
    "autoscale": "min_workers and max_workers",
    "aws_attributes": "aws",
    "azure_attributes": "azure",
    "cluster_log_conf": "log_path",
    "custom_tags": "tags",
    "data_security_mode": "",
    "driver_instance_pool_id": "driver_instance_pool_id",
    "driver_node_type_id": "driver_node_type",
    "gcp_attributes": "gcp",
    "init_scripts": "init_scripts",
    "instance_pool_id": "instance_pool_id",
    "node_type_id": "node_type",
    "num_workers": "workers",
    "runtime_engine": "photon",
    "single_user_name": "single_user",
    "spark_conf": "spark_conf",
    "spark_env_vars": "environment",
    "spark_version": "spark_version",
}
_OTHER_COMPUTE = "or set databricks.compute to serverless, and take out databricks.cluster and databricks.clusters."
# what the answer says, what is said of it, and what to do; the first that suits
_KNOWN = (
    (
        re.compile(r"only serverless", re.IGNORECASE),
        "has serverless compute alone",
        "Set databricks.compute to serverless, and take out databricks.cluster and databricks.clusters.",
    ),
    (
        re.compile(r"(budget|usage) policy", re.IGNORECASE),
        "does not let us use the budget policy that the settings name",
        "Correct databricks.serverless.budget_policy_id, or have the role User granted on that policy.",
    ),
    (
        re.compile(r"serverless.{0,60}(not (enabled|available|supported|allowed)|disabled)", re.IGNORECASE | re.DOTALL),
        "has no serverless compute, or not for us",
        "Set databricks.compute to standard or dedicated, with databricks.cluster.node_type or policy_id; or have an "
        "account admin enable serverless compute.",
    ),
    (
        re.compile(r"instance pool", re.IGNORECASE),
        "does not take the instance pool that the settings name",
        "Correct databricks.cluster.instance_pool_id and driver_instance_pool_id (`databricks instance-pools list`).",
    ),
    (
        re.compile(r"not (authorized|allowed|permitted) to create clusters?|cluster creation", re.IGNORECASE),
        "does not let us create clusters",
        f"Set databricks.cluster.policy_id to a policy that we may use, {_OTHER_COMPUTE}",
    ),
    (
        re.compile(r"node[_ ]type", re.IGNORECASE),
        "has not the node type that the settings name",
        "Set databricks.cluster.node_type to one that it has (`databricks clusters list-node-types`).",
    ),
    (
        re.compile(r"spark version", re.IGNORECASE),
        "has not the runtime that the settings name",
        "Set databricks.cluster.spark_version to one that it has (`databricks clusters spark-versions`).",
    ),
)


def compute_refusal(host: str, reason: str) -> tuple[str, str] | None:
    """Return cause and remedy of a refusal that is about compute; None of any other."""
    if found := _POLICY.search(reason):
        return f"The cluster policy at the workspace {host} forbids what the settings say: {reason}.", _allowed(
            found[1]
        )
    for sign, what, remedy in _KNOWN:
        if sign.search(reason):
            return f"The workspace {host} {what}: {reason}.", remedy
    return None


def _allowed(path: str) -> str:
    """Return what to do about a field that a policy forbids."""
    top, _, inner = path.partition(".")
    if top == "data_security_mode":
        return (
            f"Set databricks.compute to standard or dedicated as the policy says, another policy_id, {_OTHER_COMPUTE}"
        )
    setting = _SETTINGS.get(top, top)
    name = f"databricks.cluster.{setting}{f', there {inner},' if inner else ''}"
    return f"Set {name} as the policy says, or take it out; or another databricks.cluster.policy_id, {_OTHER_COMPUTE}"
