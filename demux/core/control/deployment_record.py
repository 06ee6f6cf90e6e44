"""The record of a deployment: which game runs in which task of which job, and who changes that right now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import AwareDatetime, TypeAdapter

from demux.core.control.record_format import RecordFormat
from demux.core.errors import PlanRefused

_FOLDER = "deployment."


@dataclass(frozen=True, slots=True)
class GamePlacement:
    """Where one game runs.

    Attributes:
        game: its exact name; None where the job has its key alone, and the name is unknown.
        cluster: the key of the job cluster; None for a task that was put elsewhere by hand.
    """

    key: str
    game: str | None
    job: str
    job_id: int
    task: str
    cluster: str | None


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """Where one game runs, by which plan and since when (UTC)."""

    place: GamePlacement
    plan_id: str
    since: AwareDatetime


@dataclass(frozen=True, slots=True)
class InstallerClaim:
    """The installer that changes the deployment right now.

    Attributes:
        process: what no other process has.
        at: when it began (UTC).
        until: when it ends by itself, unless it is renewed (UTC).
    """

    by: str
    process: str
    plan_id: str
    at: AwareDatetime
    until: AwareDatetime


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    """The content of a version of the record.

    Attributes:
        games: where each game runs, by key.
        claim: the installer that changes it; None for none.
        record_id: what no other record has, the same in all its versions: after a destroy, numbers restart.
        filled: by job id, what the server added to the job's settings when it was last written; a job that is being
            written, or was written by an older release, is not in it.
    """

    games: tuple[RecordedGame, ...] = ()
    claim: InstallerClaim | None = None
    record_id: str = ""
    filled: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    made: tuple[str, ...] = ()


_RECORD = TypeAdapter(DeploymentRecord)


def record_folder(wheel_path: str, deployment: str) -> str:
    """Return the folder of a deployment's record: no deployment can have this name, and its wheels a folder of it."""
    return f"{wheel_path.rstrip('/')}/{_FOLDER}{deployment}"


def deployment_in(folder: str) -> str:
    """Return the deployment whose record is in the folder."""
    return folder.rstrip("/").rpartition("/")[2].removeprefix(_FOLDER)


def deployment_format(deployment: str) -> RecordFormat[DeploymentRecord]:
    """Return how the record of a deployment is written."""
    return RecordFormat(deployment, _RECORD, DeploymentRecord(), f"the deployment {deployment}", _unusable)


def _unusable(path: str, reason: str) -> PlanRefused:
    return PlanRefused(
        f"The record of the deployment, {path}, cannot be used ({reason}).",
        "If no other command changes the deployment, remove that file: the next apply puts the record right.",
        path=path,
    )
