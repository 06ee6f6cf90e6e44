"""Which folders `destroy` removes from a root: those that the layout and the games' keys name, and no other. Pure."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from demux.core.errors import SettingsInvalid
from demux.core.names import is_key, names_of
from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings
from demux.core.text import printable


class RootPart(Enum):
    """A part of a root that `destroy` removes on request; in the order of removal."""

    CHECKPOINTS = "checkpoint"
    TABLES = "table"


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that goes.

    Attributes:
        rows: how many rows it has; None where not counted.
    """

    path: str
    part: RootPart
    rows: int | None = None


def folders(layout: Layout, games: Iterable[str], parts: Iterable[RootPart]) -> Iterator[Folder]:
    """Yield every folder that may be there of these parts of the root, in the order of removal."""
    keys = sorted({names_of(game).key for game in games})
    wanted = set(parts)
    for part in RootPart:
        if part in wanted:
            yield from (Folder(path, part) for path in _paths(layout, keys, part))


def _paths(layout: Layout, keys: Sequence[str], part: RootPart) -> Iterator[str]:
    match part:
        case RootPart.CHECKPOINTS:
            yield from map(layout.silver_checkpoint, keys)
            yield layout.bronze_checkpoint
        case RootPart.TABLES:
            yield from map(layout.silver, keys)
            yield layout.quarantine
            yield layout.bronze
            yield from _control(layout)


def _control(layout: Layout) -> tuple[str, ...]:
    return (
        layout.approvals,
        layout.deployments,
        layout.dropped,
        layout.removed,
        layout.forget,
        layout.backfills,
        layout.gaps,
        layout.topics,
        layout.schemas,
        layout.rounds,
        layout.games,
    )


def part_of(layout: Layout, path: str) -> RootPart | None:
    """Return the folder that the layout has at the path; None where the path is not ours."""
    key = path.rpartition("/")[2]
    if is_key(key) and path == layout.silver_checkpoint(key):
        return RootPart.CHECKPOINTS
    if is_key(key) and path == layout.silver(key):
        return RootPart.TABLES
    return next((part for part in RootPart if path in set(_paths(layout, (), part))), None)


def require_apart(settings: Settings, folders: Iterable[Folder]) -> None:
    """Check that nothing goes that is not ours.

    Raises:
        SettingsInvalid: a folder that goes has the source, the archive or a registry inside.
    """
    registries = [registry.path for registry in settings.registries.values()]
    others = [settings.source_path, settings.archive.path, settings.registry_path, *registries]
    for folder in folders:
        for other in others:
            if other is not None and _within(other, folder.path):
                raise SettingsInvalid(
                    f"{other}, which the settings name as source, archive or registry, is inside {folder.path}.",
                    "Move it elsewhere, or correct the settings; nothing was removed.",
                    path=other,
                )


def _within(path: str, above: str) -> bool:
    return f"{_normal(path)}/".startswith(f"{_normal(above)}/")


def _normal(path: str) -> str:
    scheme, mark, rest = path.rpartition("://")
    return f"{'' if scheme == 'file' else scheme + mark}{posixpath.normpath(rest)}"


def to_text(folders: Iterable[Folder], layout: Layout) -> str:
    """Return the text of the file that says what goes, until it is gone; paths are below the root."""
    return json.dumps({"removes": [folder.path.removeprefix(f"{layout.root}/") for folder in folders]}, indent=1)


def from_text(text: str, layout: Layout) -> tuple[Folder, ...]:
    """Return the folders of such a file, those left out that the layout does not name."""
    paths = [f"{layout.root}/{path}" for path in json.loads(text)["removes"]]
    parts = [(path, part_of(layout, path)) for path in paths]
    return tuple(Folder(path, part) for path, part in parts if part is not None)


def options_of(parts: Iterable[RootPart]) -> str:
    """Return the options of `demux destroy` that ask for these parts."""
    wanted = set(parts)
    return " ".join(f"--{part.value}s" for part in reversed(RootPart) if part in wanted)


def as_text(folders: Iterable[Folder]) -> str:
    """Return a line for each folder that goes, then what follows if tables or checkpoints alone go."""
    found = tuple(folders)
    lines = [f"- remove {folder.part.value} {printable(folder.path)}{_rows(folder)}" for folder in found]
    match {folder.part for folder in found}:
        case parts if parts == {RootPart.TABLES}:
            lines.append(_STAND.format(what="checkpoints", condition="TABLE_LOST"))
        case parts if parts == {RootPart.CHECKPOINTS}:
            lines.append(_STAND.format(what="tables", condition="CHECKPOINT_LOST"))
    return "\n".join(lines)


_STAND = (
    "! the {what} stay, and do not fit any more: `demux run` will refuse with {condition}, "
    "and `demux rebuild --bronze` makes all tables again from the source"
)


def _rows(folder: Folder) -> str:
    return "" if folder.rows is None else f" ({folder.rows:,} {'row' if folder.rows == 1 else 'rows'})"
