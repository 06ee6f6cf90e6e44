"""The limit of a task's parameters: longer settings go into a file beside the wheel, games into more tasks. Pure.

The API's reference allows 10,000 bytes as JSON, and for parameters of Python no character beyond ASCII.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from demux.core.errors import PlanRefused
from demux.core.settings.loading.loader import MAX_FILE_BYTES

MAX_BYTES = 10_000
# what the games and the settings of one task may have; the rest is for the command and the paths
ROOM_FOR_GAMES = 6_000
ROOM_BESIDE_GAMES = 3_500
ROOM_FOR_SETTINGS = 9_000

# a bundle's targets replace them in the parameters; of the engine a plan tells what the jobs have
STAYING = frozenset({"root", "databricks.name", "tables.catalog", "run.engine"})

_ESCAPED = re.compile(r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8}))")
_OURS = re.compile(r"settings\.[0-9a-f]{16}\.yml")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file of settings that a task reads.

    Attributes:
        content: the whole file, UTF-8.
    """

    path: str
    content: bytes


def size_of(parameters: Iterable[str]) -> int:
    """Return the bytes of the parameters as JSON, as many as any way of writing it takes."""
    return len(json.dumps(list(parameters)))


def too_long(texts: Mapping[str, str], room: int) -> tuple[str, ...]:
    """Return the settings that must go into a file so that the others fit: the longest ones, sorted; () if all do.

    Root, name, catalog and engine never go, even if the others do not fit then.

    Args:
        texts: settings as `--set` takes them, by dotted key.
        room: bytes for all of them.
    """
    sizes = {key: size_of(("--set", f"{key}={text}")) for key, text in texts.items()}
    total, moved = sum(sizes.values()), []
    for key in sorted(sizes.keys() - STAYING, key=lambda key: (-sizes[key], key)):
        if total <= room:
            break
        total -= sizes[key]
        moved.append(key)
    return tuple(sorted(moved))


def file_of(text: str, folder: str) -> SettingsFile:
    """Return the file of these settings in a folder.

    Raises:
        PlanRefused: it is longer than a settings file may be.
    """
    content = _ESCAPED.sub(_readable, text).encode()
    if len(content) > MAX_FILE_BYTES:
        raise PlanRefused(
            f"A task would have {len(content):,} bytes of settings; a settings file has {MAX_FILE_BYTES:,} at most.",
            "Shorten the longest, such as games.allow: `games.policy: auto` takes games without naming them.",
            size=len(content),
        )
    return SettingsFile(f"{folder}/settings.{hashlib.sha256(content).hexdigest()[:16]}.yml", content)


def is_our_settings(path: str) -> bool:
    """Return whether the name of the file is one that `file_of` makes."""
    return _OURS.fullmatch(path.rpartition("/")[2]) is not None


def settings_paths(jobs: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the paths of the settings files that the jobs' tasks read, from the jobs' settings."""
    found = (task.get("python_wheel_task", {}).get("parameters", ()) for job in jobs for task in job.get("tasks", ()))
    pairs = (pair for parameters in found for pair in pairwise(parameters))
    return frozenset(path for option, path in pairs if option == "--settings")


def in_groups(games: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the arguments that name the games, in order, in groups that fit into a task each; one for no games."""
    groups: list[list[str]] = [[]]
    size = 0
    for game in games:
        size += size_of((game,))
        if size > ROOM_FOR_GAMES:
            groups.append([])
            size = size_of((game,))
        groups[-1].append(game)
    return [tuple(group) for group in groups]


def require_legal(task: str, parameters: Sequence[str]) -> None:
    """Let parameters pass that the workspace takes.

    Raises:
        PlanRefused: they are too long, or beyond ASCII, whatever was put into files: a path is.
    """
    if beyond := [word for word in parameters if not word.isascii()]:
        raise PlanRefused(
            f"The task {task} would have what is not ASCII in its parameters, and a workspace takes nothing else: "
            f"{', '.join(beyond)}.",
            "Write root, databricks.wheel_path and the path that --wheel names in ASCII.",
            task=task,
            parameters=tuple(beyond),
        )
    if (size := size_of(parameters)) > MAX_BYTES:
        raise PlanRefused(
            f"The parameters of the task {task} would have {size:,} bytes, and a workspace takes {MAX_BYTES:,}.",
            "Shorten root, databricks.wheel_path, or the path that --wheel names.",
            task=task,
            size=size,
        )


def _readable(escaped: re.Match[str]) -> str:
    character = chr(int(escaped[1] or escaped[2], 16))
    # what is ASCII was escaped as it has a meaning
    return escaped[0] if character.isascii() or not character.isprintable() else character
