"""The record of a deployment: which game runs in which task of which job, and who changes that right now. Pure.

It is kept as files of the workspace, one for each version, `00000001.json` and so on, each written once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from demux.core.errors import PlanRefused

FORMAT = 1
_FILE = re.compile(r"([0-9]{8,})\.json")
_FOLDER = "deployment."


@dataclass(frozen=True, slots=True)
class GamePlacement:
    """Where one game runs.

    Attributes:
        key: the game's key.
        game: its exact name; None where the job has its key alone, and the name is unknown.
        job: the job's name.
        job_id: the job's id.
        task: the key of the task.
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
    since: datetime


@dataclass(frozen=True, slots=True)
class InstallerClaim:
    """Who changes the deployment right now.

    Attributes:
        by: user and machine.
        process: what no other process has.
        plan_id: the plan that is applied.
        at: when it began (UTC).
        until: when it ends by itself, unless it is renewed (UTC).
    """

    by: str
    process: str
    plan_id: str
    at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    """What a version of the record says.

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


def record_folder(wheel_path: str, deployment: str) -> str:
    """Return the folder of a deployment's record: no deployment can have this name, and its wheels a folder of it."""
    return f"{wheel_path.rstrip('/')}/{_FOLDER}{deployment}"


def deployment_in(folder: str) -> str:
    """Return the deployment whose record is in the folder."""
    return folder.rstrip("/").rpartition("/")[2].removeprefix(_FOLDER)


def file_of(version: int) -> str:
    """Return the name of a version's file; versions are counted from 1."""
    return f"{version:08}.json"


def version_in(name: str) -> int | None:
    """Return the version that a file of this name has; None for another file."""
    found = _FILE.fullmatch(name)
    return int(found[1]) if found else None


def to_text(deployment: str, record: DeploymentRecord) -> str:
    """Return the record as JSON: version (of this form), deployment, record_id, claim or null, games, made, and filled.

    It is the same each time.
    """
    content = {
        "version": FORMAT,
        "deployment": deployment,
        "record_id": record.record_id,
        "claim": _claim_json(record.claim) if record.claim else None,
        "games": [
            {**asdict(game.place), "plan_id": game.plan_id, "since": game.since.isoformat()} for game in record.games
        ],
        "made": list(record.made),
        "filled": {str(job_id): record.filled[job_id] for job_id in sorted(record.filled)},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def from_text(deployment: str, text: str, path: str) -> DeploymentRecord:
    """Return the record that `to_text` wrote.

    Raises:
        PlanRefused: it is none, or of another version or deployment.
    """
    try:
        content = json.loads(text)
        if (content["version"], content["deployment"]) != (FORMAT, deployment):
            raise ValueError(f"version {content['version']} of deployment {content['deployment']}")
        claim = content["claim"]
        games = tuple(map(_game, content["games"]))
        # earlier releases wrote neither
        filled = {int(job_id): dict(fields) for job_id, fields in content.get("filled", {}).items()}
        made = tuple(map(str, content.get("made", [])))
        return DeploymentRecord(games, _claim(claim) if claim else None, content["record_id"], filled, made)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise PlanRefused(
            f"The record of the deployment, {path}, cannot be used ({type(error).__name__}: {error}).",
            "If no other command changes the deployment, remove that file: the next apply puts the record right.",
            path=path,
        ) from None


def _claim_json(claim: InstallerClaim) -> dict[str, str]:
    return {**asdict(claim), "at": claim.at.isoformat(), "until": claim.until.isoformat()}


def _claim(written: Mapping[str, Any]) -> InstallerClaim:
    return InstallerClaim(**{**written, "at": _time(written["at"]), "until": _time(written["until"])})


def _game(written: Mapping[str, Any]) -> RecordedGame:
    place = {name: value for name, value in written.items() if name not in {"plan_id", "since"}}
    return RecordedGame(GamePlacement(**place), written["plan_id"], _time(written["since"]))


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return time
