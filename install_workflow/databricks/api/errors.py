"""A workspace's answers that are no success, in our words: which condition, what to do. Pure."""

from __future__ import annotations

import re

from demux.core.errors import DemuxError, SettingsInvalid, WorkspaceRefused, WorkspaceUnavailable
from demux.core.http.failures import CertificateRefused, HttpRejected, HttpUnusable
from install_workflow.databricks.api.compute_refusals import compute_refusal

_TOKEN = re.compile(r"(invalid|expired|revoked).{0,20}token|token.{0,20}(invalid|expired|revoked)", re.IGNORECASE)
_RUN_AS = re.compile(r"run[_ ]as|service principal", re.IGNORECASE)
# an older way to say 404
_NO_JOB = re.compile(r"Job \d+ does not exist")


class Missing(WorkspaceRefused):
    """There is no such thing in the workspace."""


class Denied(WorkspaceRefused):
    """We may not do that; of a job to be changed, it may also mean that there is none."""


def unavailable(host: str, doing: str, unusable: HttpUnusable) -> WorkspaceUnavailable:
    """Return the error of a workspace that does not answer; `doing` continues after "to"."""
    when = f" after {unusable.after_s:,.0f} s" if unusable.after_s else ""
    return WorkspaceUnavailable(
        f"The workspace {host}, asked to {doing}, {unusable.what}.",
        f"Run the same command again{when}; what it did before stays, and is not done twice.",
        host=host,
        doing=doing,
    )


def not_trusted(host: str, distrusted: CertificateRefused) -> WorkspaceRefused:
    """Return the error of a certificate that one side does not accept."""
    return WorkspaceRefused(
        f"The certificate of the workspace {host} is not trusted, or ours is not: {distrusted.reason}.",
        "Correct the host; behind a proxy of your own, name its authorities in REQUESTS_CA_BUNDLE.",
        host=host,
    )


def no_login(reason: str) -> WorkspaceRefused:
    """Return the error of a login that cannot even be tried."""
    return WorkspaceRefused(
        f"There is no usable login for a workspace: {reason}.",
        "Set DATABRICKS_HOST and DATABRICKS_TOKEN, or name a profile of ~/.databrickscfg in DATABRICKS_CONFIG_PROFILE.",
        reason=reason,
    )


def refused(host: str, doing: str, rejected: HttpRejected) -> DemuxError:
    """Return the error of an answer that says no; `doing` continues after "to"."""
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
