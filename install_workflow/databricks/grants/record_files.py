"""Our record of what we granted, as files of the workspace."""

from __future__ import annotations

from functools import partial

from install_workflow.databricks.api.client import Connection
from install_workflow.databricks.api.versioned_file import Form, RecordFiles
from install_workflow.databricks.grants.diff import Record
from install_workflow.databricks.grants.record import from_text, to_text


def grants_files(connection: Connection, wheel_path: str, deployment: str) -> RecordFiles[Record]:
    """Return the versions of a deployment's record of grants."""
    form = Form(Record(), partial(to_text, deployment), partial(from_text, deployment), "the grants")
    # no deployment can have this name, and its wheels a folder of it
    return RecordFiles(connection, f"{wheel_path}/grants.{deployment}", form)
