"""`demux maintain`: small files joined, old ones removed, old rows of bronze retired; by itself when it is due."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from pathlib import Path

import typer
from rich.text import Text

from demux.cli.command import ROOT, SET, SETTINGS, TAKE_TURNS, Pace, command_context, console, settings_of
from demux.cli.repair.maintain_text import done_text
from demux.core.error_mapping import named
from demux.core.errors import DemuxError, ErrorKind, ExitCode
from demux.core.names import names_of
from demux.core.root.lock import Access
from demux.operations.maintenance.report import TableMaintenance, Vacuum
from demux.operations.maintenance.run import MaintenanceRequest, TableMaintainer
from demux.operations.maintenance.state import count_from, next_due, require_safe
from demux.operations.maintenance.tables import tables_of
from demux.pipeline.context import CommandContext
from demux.pipeline.read_offsets import game_offsets

# others may have the root after so many seconds of work, however many tables are left
_STEP_S = 2.0
_LOG = logging.getLogger("demux")


def maintain(
    games: list[str] = typer.Option(
        [], "--game", help="Only the table of this game (exact name). May be repeated.", metavar="NAME"
    ),
    vacuum: bool = typer.Option(True, "--vacuum/--no-vacuum", help="Remove files that no table needs any more."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be done."),
    force: bool = typer.Option(False, "--force", help="Also where files are kept for less than an hour."),
    wait: bool = TAKE_TURNS,
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Join small files, remove old ones, retire old rows of bronze; streams may run meanwhile.

    Example: `demux maintain --dry-run`
    """
    settings = settings_of(settings_file, root, changes)
    require_safe(settings.maintain.kept, force=force or dry_run or not vacuum)
    access = Access.LOOK if dry_run else Access.TURNS
    with command_context(settings, "maintain", access, wait=wait) as place:
        _require_known(place, games)
        wanted = Vacuum.YES if vacuum else Vacuum.NO
        done = _maintained(place, games, wanted, dry_run=dry_run)
    raise typer.Exit(_exit_code(done, stopped=place.stop.is_set()))


def maintain_if_due(place: CommandContext) -> None:
    """Maintain the tables where that is due; a failure is printed and logged, and the rounds continue."""
    settings, now = place.settings.maintain, datetime.now(timezone.utc)
    try:
        due = next_due(count_from(place.layout, now), settings.interval)
        if due is None or due > now or place.stop.is_set():
            return
        require_safe(settings.kept, force=False)
        _maintained(place, (), Vacuum.YES, dry_run=False)
        if place.hold is not None:
            # what the fleet knows of the tables is old now
            place.hold.visits += 1
    except KeyboardInterrupt:
        # a signal came while another command had the root; nothing is under way
        if not place.stop.is_set():
            raise
    except Exception as error:  # nothing is lost by it, whatever it is
        _LOG.exception("maintenance failed")
        console.print(f"maintenance failed: {named(error)}", style="red", soft_wrap=True)


def _maintained(
    place: CommandContext, games: Collection[str], vacuum: Vacuum, *, dry_run: bool
) -> tuple[TableMaintenance, ...]:
    """Return what was done to each table, once it is printed."""
    settings = place.settings.maintain
    now, threads = datetime.now(timezone.utc), place.settings.run.parallelism
    request = MaintenanceRequest(settings, vacuum, dry_run, now, uuid.uuid4().hex, threads, whole=not games)
    offsets_of, pace = game_offsets(place.spark, place.layout), Pace(place, _STEP_S)
    upkeep = TableMaintainer(place.spark, place.layout, request, offsets_of, pace, place.stop)
    tables = tables_of(place.layout, settings, _names(place), games)
    done: list[TableMaintenance] = []
    with console.status(Text("maintaining …")) as status:
        for one in upkeep.run(tables):
            done.append(one)
            status.update(Text(f"maintaining … {len(done)} of {len(tables)} tables"))
            _log(one)
    console.print(done_text(done, upkeep.held_back, dry_run=dry_run))
    return tuple(done)


def _log(done: TableMaintenance) -> None:
    if done.error is not None:
        _LOG.warning("maintenance of %s failed: %s", done.table.name, done.error)
    elif done.files_before != done.files_after or done.removed or done.rows:
        message = "maintenance of %s: %d files, then %d; %s old ones removed; %d rows out"
        _LOG.info(message, done.table.name, done.files_before, done.files_after, done.removed, done.rows)


def _names(place: CommandContext) -> Mapping[str, str]:
    return {names_of(game).key: game for game in place.control.known_games()}


def _require_known(place: CommandContext, games: Collection[str]) -> None:
    """Check that each game has a table or rows in bronze; raises `GameUnknown`."""
    from deserializer.redecode.replay import require_game

    for game in games:
        if not place.layout.storage.table_exists(place.layout.silver(names_of(game).key)):
            require_game(place.spark, place.layout, game)


def _exit_code(done: Collection[TableMaintenance], *, stopped: bool) -> ExitCode:
    errors: list[DemuxError] = [one.error for one in done if one.error is not None]
    if errors:
        return ExitCode.TRANSIENT if all(e.kind is ErrorKind.TRANSIENT for e in errors) else ExitCode.GAMES_FAILED
    return ExitCode.INTERRUPTED if stopped else ExitCode.OK
