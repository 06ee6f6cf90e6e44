"""Removes tables and checkpoints from a root; one that is killed midway is noticed by all who come, and ends the same.

Before anything goes, a file below the root says what will; it is the last to go. So the order does not matter, nor
how far a folder's removal came: no command works on a root that has the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from demux.core.catalog.spark_tables import read_table
from demux.core.control.games_and_rounds import Control
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.errors import RemovalUnfinished
from demux.core.root.layout import Layout, layout_of
from demux.core.settings.settings import Settings
from demux.core.storage.files import Storage
from demux.core.storage.table_address import TableAddress
from install_workflow.destroy.plan import Folder, RootPart, folders, from_text, options_of, require_apart, to_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# counting is one small job for each table
_MOST_COUNTED = 100


def list_removable(
    spark: SparkSession, settings: Settings, control: Control, parts: Collection[RootPart]
) -> tuple[Folder, ...]:
    """Return the folders of these parts that are there, in the order of removal; changes nothing.

    After a removal that was interrupted: what that one left, and nothing else. Rows are counted where the tables are
    at most 100.

    Raises:
        RemovalUnfinished: an interrupted removal was of further parts.
        SettingsInvalid: something that is not ours would go with a folder.
    """
    layout = layout_of(settings)
    if is_unfinished(layout):
        found = _left(layout)
        if not {folder.part for folder in found} <= set(parts):
            require_whole(layout)
    else:
        found = _new(spark, layout, control, parts) if parts else ()
    require_apart(settings, found)
    return found


def remove_from_root(
    layout: Layout,
    folders: Iterable[Folder],
    report: Callable[[Folder], None] = lambda _: None,
    unregister: Callable[[str], None] = lambda _: None,
) -> None:
    """Remove the folders; a second call removes what is left.

    Args:
        folders: what goes, as `list_removable` has it.
        report: called for each removed folder.
        unregister: called with the path of each table before its removal, so that a catalog forgets it.
    """
    folders = tuple(folders)
    if folders:
        layout.storage.write_text(layout.removal, to_text(folders, layout))
    for folder in folders:
        if folder.part is RootPart.TABLES:
            unregister(folder.path)
        layout.storage.delete_folder(folder.path)
        report(folder)
    layout.storage.delete_folder(layout.removal)


def require_whole(layout: Layout) -> None:
    """Check that no removal was interrupted, or is under way: who only looks may come beside one.

    Raises:
        RemovalUnfinished: one was, or is.
    """
    if is_unfinished(layout):
        options = options_of(folder.part for folder in _left(layout))
        raise RemovalUnfinished(
            f"`demux destroy` has not finished removing tables or checkpoints of {layout.root}.",
            f"If it does not run any more, run `demux destroy {options}` again: it removes the rest.",
            root=layout.root,
        )


def is_unfinished(layout: Layout) -> bool:
    """Return whether a removal was interrupted."""
    return layout.storage.exists(layout.removal)


def _left(layout: Layout) -> tuple[Folder, ...]:
    return from_text(layout.storage.read_text(layout.removal), layout)


def _new(spark: SparkSession, layout: Layout, control: Control, parts: Iterable[RootPart]) -> tuple[Folder, ...]:
    # every game that a control table or bronze names
    games = {*control.known_games(), *control.history().last, *games_in_bronze(spark, layout)}
    found = [folder for folder in folders(layout, games, parts) if _is_there(layout.storage, folder)]
    if sum(folder.part is RootPart.TABLES for folder in found) > _MOST_COUNTED:
        return tuple(found)
    return tuple(_count_rows(spark, folder) for folder in found)


def _is_there(storage: Storage, folder: Folder) -> bool:
    match folder.part:
        case RootPart.TABLES:
            return storage.table_exists(folder.path)
        case RootPart.CHECKPOINTS:
            # Hadoop's client leaves objects without bytes, which mark folders
            return any(file.bytes for file in storage.files(folder.path))


def _count_rows(spark: SparkSession, folder: Folder) -> Folder:
    match folder.part:
        case RootPart.TABLES:
            # by path: the catalog need not learn of a table that goes
            return replace(folder, rows=read_table(spark, TableAddress(folder.path)).count())
        case RootPart.CHECKPOINTS:
            return folder
