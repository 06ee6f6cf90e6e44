"""Bad answers of a workspace as our errors: the condition, and what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from demux.core.errors import DemuxError, SettingsInvalid, WorkspaceRefused, WorkspaceUnavailable
from demux.core.http.failures import CertificateRefused, HttpRejected, HttpUnusable

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
        return f"The cluster policy at the workspace {host} forbids what the settings say: {reason}.", _policy_remedy(
            found[1]
        )
    for sign, what, remedy in _KNOWN:
        if sign.search(reason):
            return f"The workspace {host} {what}: {reason}.", remedy
    return None


def _policy_remedy(path: str) -> str:
    """Return the remedy for a field that a policy forbids."""
    top, _, inner = path.partition(".")
    if top == "data_security_mode":
        return (
            f"Set databricks.compute to standard or dedicated as the policy says, another policy_id, {_OTHER_COMPUTE}"
        )
    setting = _SETTINGS.get(top, top)
    name = f"databricks.cluster.{setting}{f', there {inner},' if inner else ''}"
    return f"Set {name} as the policy says, or take it out; or another databricks.cluster.policy_id, {_OTHER_COMPUTE}"


_TOKEN = re.compile(r"(invalid|expired|revoked).{0,20}token|token.{0,20}(invalid|expired|revoked)", re.IGNORECASE)
_RUN_AS = re.compile(r"run[_ ]as|service principal", re.IGNORECASE)
# an older way to say 404
_NO_JOB = re.compile(r"Job \d+ does not exist")


class Missing(WorkspaceRefused):
    """There is no such thing in the workspace."""


class Denied(WorkspaceRefused):
    """We may not do that; of a job to be changed, it may also mean that there is none."""


def unavailable_error(host: str, doing: str, unusable: HttpUnusable) -> WorkspaceUnavailable:
    """Return the error of a workspace that does not answer; `doing` continues after "to"."""
    when = f" after {unusable.after_s:,.0f} s" if unusable.after_s else ""
    return WorkspaceUnavailable(
        f"The workspace {host}, asked to {doing}, {unusable.what}.",
        f"Run the same command again{when}; what it did before stays, and is not done twice.",
        host=host,
        doing=doing,
    )


def certificate_error(host: str, distrusted: CertificateRefused) -> WorkspaceRefused:
    """Return the error of a certificate that one side does not accept."""
    return WorkspaceRefused(
        f"The certificate of the workspace {host} is not trusted, or ours is not: {distrusted.reason}.",
        "Correct the host; behind a proxy of your own, name its authorities in REQUESTS_CA_BUNDLE.",
        host=host,
    )


def login_error(reason: str) -> WorkspaceRefused:
    """Return the error of a login that cannot even be tried."""
    return WorkspaceRefused(
        f"There is no usable login for a workspace: {reason}.",
        "Set DATABRICKS_HOST and DATABRICKS_TOKEN, or name a profile of ~/.databrickscfg in DATABRICKS_CONFIG_PROFILE.",
        reason=reason,
    )


def refusal_error(host: str, doing: str, rejected: HttpRejected) -> DemuxError:
    """Return the error of a refusal; `doing` continues after "to"."""
    reason = rejected.message
    about: dict[str, object] = {"host": host, "doing": doing, "status": rejected.status, "reason": reason}
    if rejected.status == 401 or (rejected.status == 403 and _TOKEN.search(reason)):
        return WorkspaceRefused(
            f"The workspace {host} does not accept our login: {reason}.",
            "Set DATABRICKS_TOKEN to a valid token of this workspace, or log in again.",
            **about,
        )
    if rejected.status == 403 and _RUN_AS.search(reason):
        return Denied(
            f"At the workspace {host}, we may not let a job run as another principal: {reason}.",
            "Have the role Service Principal User granted on it, or correct databricks.run_as.",
            **about,
        )
    if rejected.status in {400, 403} and (known := compute_refusal(host, reason)):
        cause, remedy = known
        return SettingsInvalid(cause, remedy, **about)
    if rejected.status == 403:
        return Denied(
            f"At the workspace {host}, we were not permitted to {doing}: {reason}.",
            "Have a workspace admin grant it, or log in as a principal that may.",
            **about,
        )
    if rejected.status == 404 or (rejected.status == 400 and _NO_JOB.match(reason)):
        return Missing(
            f"The workspace {host}, asked to {doing}, does not know what that needs: {reason}.",
            "Make the plan again, and correct the names in the section databricks of the settings.",
            **about,
        )
    return WorkspaceRefused(
        f"The workspace {host} refused to {doing}: {reason}.",
        "Correct the section databricks of the settings, then run the same command again.",
        **about,
    )
