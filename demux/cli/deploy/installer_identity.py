"""Who we are to other installers, and what is said of them."""

from __future__ import annotations

import getpass
import os
import socket
import tempfile
import uuid
from datetime import datetime, timezone
from pathlib import Path

from demux.cli.command import console
from demux.core.settings.databricks import DatabricksSettings
from demux.core.text import printable
from install_workflow.databricks.apply.deploy import deployment_of
from install_workflow.databricks.apply.deployment_lock import DeploymentLock, InstallerId, LocalPresence, OnClaim
from install_workflow.databricks.jobs.jobs_api import Workspace


def deployment_lock_of(workspace: Workspace, settings: DatabricksSettings) -> DeploymentLock:
    """Return our turn at changing the deployment, not yet begun; raises as `deployment_of`."""
    process = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    who = InstallerId(
        f"{_user()}@{socket.gethostname()}", process, LocalPresence(_cache() / "protobuf-demux" / "installers")
    )
    folder, name = settings.wheel_path or "", deployment_of(settings)
    return DeploymentLock(workspace.connection, folder, name, who, lambda: datetime.now(timezone.utc), uuid.uuid4().hex)


def begin(workspace: Workspace, settings: DatabricksSettings, take_over: bool) -> DeploymentLock:
    """Return our turn, begun; raises as `DeploymentLock.begin`."""
    turn = deployment_lock_of(workspace, settings)
    turn.begin(OnClaim.TAKE_OVER if take_over else OnClaim.REFUSE)
    return turn


def read_deployment_lock(workspace: Workspace, settings: DatabricksSettings) -> DeploymentLock:
    """Return our turn, not begun, with the record as it is; raises as `DeploymentLock.look`."""
    turn = deployment_lock_of(workspace, settings)
    turn.look()
    return turn


def print_busy(turn: DeploymentLock) -> None:
    """Print which installer changes the deployment now, if one does; raises as `DeploymentLock.look`."""
    if claim := turn.look():
        since = f"{claim.at:%H:%M:%S} UTC ({claim.by}, process {claim.process})"
        console.print(f"! busy   another command installs {turn.deployment} since {printable(since)}", soft_wrap=True)


def _cache() -> Path:
    """Return the user's folder for what may be lost."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        # a container's user may have no home
        return Path(tempfile.gettempdir(), f"cache-{os.getuid()}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # a container's user may have no name
        return f"user {os.getuid()}"
