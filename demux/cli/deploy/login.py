"""The workspace that the settings and the environment name, with our login there."""

from __future__ import annotations

import os

from demux.core.settings.settings import Settings
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.login import login_of


def connect(settings: Settings) -> WorkspaceConnection:
    """Return the connection; asks the host once where it logs in.

    Raises:
        SecretMissing: the secret of the login is not there.
        WorkspaceRefused: there is no login.
    """
    return WorkspaceConnection(login_of(settings.databricks.login, os.environ))
