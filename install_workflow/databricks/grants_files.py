"""Our record of what we granted, as files of the workspace."""

from __future__ import annotations

from functools import partial

from install_workflow.databricks.connection import Connection
from install_workflow.databricks.grants import Record
from install_workflow.databricks.grants_record import from_text, to_text
from install_workflow.databricks.record_files import Form, RecordFiles


def grants_files(connection: Connection, wheel_path: str, deployment: str) -> RecordFiles[Record]:
    """Return the versions of a deployment's record of grants."""
    form = Form(Record(), partial(to_text, deployment), partial(from_text, deployment), "the grants")
    # no deployment can have this name, and its wheels a folder of it
    return RecordFiles(connection, f"{wheel_path}/grants.{deployment}", form)
