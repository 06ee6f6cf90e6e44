"""Our record of what we granted, as the text of a file. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import astuple
from functools import partial

from demux.core.errors import PlanRefused
from install_workflow.databricks.api.client import WorkspaceConnection
from install_workflow.databricks.api.versioned_file import RecordFiles, RecordFormat
from install_workflow.databricks.grants.diff import PRIVILEGES, Grant, GrantsRecord, kind_of

VERSION = 1
_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+){0,2}")


def to_text(deployment: str, record: GrantsRecord) -> str:
    """Return the record as JSON: version, deployment, and lists of [name, principal, privilege]; the same each time."""
    content = {
        "version": VERSION,
        "deployment": deployment,
        "granted": _lists(record.granted),
        "begun": _lists(record.begun),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def from_text(deployment: str, text: str, path: str) -> GrantsRecord:
    """Return the record that `to_text` wrote.

    Raises:
        PlanRefused: it is none, or of another version or deployment; a guess could revoke what others gave.
    """
    try:
        content = json.loads(text)
        if (content["version"], content["deployment"]) != (VERSION, deployment):
            raise ValueError(f"version {content['version']} of deployment {content['deployment']}")
        return GrantsRecord(*(frozenset(map(_grant, content[name])) for name in ("granted", "begun")))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise PlanRefused(
            f"The record of what was granted, {path}, cannot be used ({type(error).__name__}: {error}).",
            "Put an earlier one in its place; or remove all of that folder, and what was granted stays as if it were "
            "another's.",
            path=path,
        ) from None


def _lists(grants: Iterable[Grant]) -> list[list[str]]:
    return [list(astuple(grant)) for grant in sorted(grants)]


def _grant(written: list[str]) -> Grant:
    grant = Grant(*written)
    # we never granted anything else, so nothing else is ours
    if not grant.principal or not _NAME.fullmatch(grant.on) or grant.privilege != PRIVILEGES[kind_of(grant.on)]:
        raise ValueError(f"{grant.privilege} on {grant.on}")
    return grant


def grants_files(connection: WorkspaceConnection, wheel_path: str, deployment: str) -> RecordFiles[GrantsRecord]:
    """Return the versions of a deployment's record of grants."""
    form = RecordFormat(GrantsRecord(), partial(to_text, deployment), partial(from_text, deployment), "the grants")
    # no deployment can have this name, and its wheels a folder of it
    return RecordFiles(connection, f"{wheel_path}/grants.{deployment}", form)
