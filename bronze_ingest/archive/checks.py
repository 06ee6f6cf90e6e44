"""What Spark would let pass in silence: settings that it reads in another way, and names that it leaves out."""

from __future__ import annotations

import locale
import os
from collections.abc import Iterator
from pathlib import Path

from bronze_ingest.archive.file_open import local_path
from demux.core.errors import SettingsInvalid, StorageFailed
from demux.core.settings.source import ArchiveSettings, CleanUp
from demux.core.text import printable

_GLOB = frozenset("{}[]*?\\")
_HIDDEN = ("_", ".")


def require_consistent(path: str, settings: ArchiveSettings) -> None:
    """Check the settings.

    Raises:
        SettingsInvalid: Spark would take the folder for a pattern, or read again what was moved away.
    """
    if glob := sorted(_GLOB & set(path)):
        raise SettingsInvalid(
            f"archive.path {path} has {' '.join(glob)}, which makes it a pattern to Spark.",
            "Name a folder without them; `archive.pattern` says which files to read.",
        )
    if settings.clean is CleanUp.ARCHIVE and settings.clean_path is not None:
        inner, outer = _parts(settings.clean_path), _parts(path)
        shared = min(len(inner), len(outer))
        if inner[:shared] == outer[:shared]:
            raise SettingsInvalid(
                f"archive.clean_path {settings.clean_path} and archive.path {path} lie within each other.",
                "Name a folder beside the archive, or what was moved there would be read again.",
            )


def require_names(path: str) -> None:
    """Check the names of local files and folders: what Java cannot name, Spark leaves out.

    Raises:
        StorageFailed: there is such a name.
    """
    local = local_path(path)
    if local is None:
        return
    odd = [(folder, name) for folder, name in _names(local) if not name.isascii()]
    if not odd or _java_has("".join(name for _, name in odd)):
        return
    shown = next(printable(f"{folder}/{name}") for folder, name in odd if not _java_has(name))
    raise StorageFailed(
        f"The archived file {shown} has a name that Java cannot have here.",
        "Rename it, or start in a locale of UTF-8, such as LC_ALL=C.UTF-8.",
        path=shown,
    )


def _parts(location: str) -> list[str]:
    local = local_path(location)
    return (location if local is None else os.path.normpath(Path(local).absolute())).rstrip("/").split("/")


def _names(folder: str) -> Iterator[tuple[str, str]]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        yield from ((parent, name) for name in (*folders, *files) if not name.startswith(_HIDDEN))


def _java_has(text: str) -> bool:
    # Java takes the names of files in the encoding of the locale that it was started in: ours
    try:
        text.encode(locale.nl_langinfo(locale.CODESET))
    except UnicodeEncodeError:  # also of a byte that is no UTF-8, half of a surrogate pair in Python
        return False
    return True
