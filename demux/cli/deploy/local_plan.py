"""`demux apply` and `demux destroy` without a deployment: which game runs where on this machine is written down."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime, timezone

import typer

from demux.cli.command import AfterRemoval, ask, ask_to_remove, can_ask, command_context, console
from demux.cli.output.progress import print_left_out
from demux.core.catalog.registration import forget, require_catalog
from demux.core.root.lock import Access
from demux.core.settings.settings import Settings
from demux.core.text import first_few, printable
from demux.pipeline.context import CommandContext
from install_workflow.destroy.apply import is_unfinished, list_removable, remove_from_root
from install_workflow.destroy.plan import Folder, RootPart
from install_workflow.destroy.plan import as_text as folders_text
from install_workflow.planning.plan import as_text
from install_workflow.planning.round_plan import apply, preview_round


def apply_here(settings: Settings, wait: bool, yes: bool) -> None:
    """Write down which game runs where and which waits, after a question; a second call changes nothing."""
    with command_context(settings, "apply", Access.ALONE, wait=wait) as place:
        registered = place.registered()
        plan = preview_round(place.spark, place.settings, place.control, registered.games).plan
        print_left_out(registered)
        console.print(as_text(plan), soft_wrap=True)
        if not plan.is_empty and not yes and can_ask():
            ask("Apply this plan?")
        # a game that waits is written down too, and is no change of the plan
        apply(place.control, plan, datetime.now(timezone.utc))
        if not plan.is_empty:
            console.print("applied; `demux run` runs the games so")


def destroy_here(settings: Settings, parts: frozenset[RootPart], wait: bool, yes: bool) -> None:
    """Forget which game runs where, and remove these parts of the root; all of it is listed before, and asked for.

    Raises:
        typer.Exit: there is nothing to remove.
    """
    with place_to_remove(settings, wait) as place:
        found = list_parts(place, parts)
        # half removed tables are not read
        games = [] if is_unfinished(place.layout) else sorted(place.control.known_games())
        if games:
            console.print(f"- forget where {_games(games)} ran (control/games)", soft_wrap=True)
        print_parts(found)
        if not games and not found:
            console.print("nothing to remove")
            raise typer.Exit
        ask_to_remove(yes)
        if games:
            place.control.replace_games(())
        remove_parts(place, found)


def place_to_remove(settings: Settings, wait: bool) -> AbstractContextManager[CommandContext]:
    """Return the workplace of `destroy`, which alone works on a root whose removal was interrupted."""
    return command_context(settings, "destroy", Access.ALONE, wait=wait, after_removal=AfterRemoval.GO_ON)


def list_parts(place: CommandContext, parts: frozenset[RootPart]) -> tuple[Folder, ...]:
    """Return the folders to remove; raises as `list_removable`, and as `require_catalog` where tables go."""
    found = list_removable(place.spark, place.settings, place.control, parts)
    if any(folder.part is RootPart.TABLES for folder in found):
        require_catalog(place.spark, place.layout.storage.catalog)
    return found


def print_parts(folders: tuple[Folder, ...]) -> None:
    """Print the folders to remove from the root."""
    if folders:
        console.print(folders_text(folders), soft_wrap=True)


def remove_parts(place: CommandContext, folders: tuple[Folder, ...]) -> None:
    """Remove the folders, and say each; the catalog forgets the tables."""
    storage = place.layout.storage
    remove_from_root(place.layout, folders, _print_removed, lambda path: forget(place.spark, storage.address(path)))


def _print_removed(folder: Folder) -> None:
    console.print(f"- remove {folder.part.value} {printable(folder.path)}: done", soft_wrap=True)


def _games(games: list[str]) -> str:
    names = first_few([printable(game) for game in games])
    return f"{len(games):,} {'game' if len(games) == 1 else 'games'} ({names})"
