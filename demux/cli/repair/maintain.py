"""`demux maintain`: small files joined, old ones removed, old rows of bronze retired; by itself when it is due."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from demux.cli.command import Pace, command_context, console, print_failure, session_to_look
from demux.cli.output.print_json import print_json
from demux.cli.repair.maintain_text import done_content, done_text
from demux.core.control.games_and_rounds import Control
from demux.core.error_mapping import as_demux_error
from demux.core.errors import ExitCode, exit_code_of
from demux.core.names import names_of
from demux.core.root.layout import Layout, layout_of
from demux.core.root.lock import Access
from demux.core.settings.settings import Settings
from demux.operations.maintenance.report import TableMaintenance, Vacuum
from demux.operations.maintenance.run import MaintenanceRequest, TableMaintainer, tables_of
from demux.operations.maintenance.state import count_from, next_due, require_safe
from demux.pipeline.context import CommandContext
from demux.pipeline.read_offsets import game_offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# others may have the root after so many seconds of work, however many tables are left
_STEP_S = 2.0
_LOG = logging.getLogger("demux")


def maintain(
    settings: Settings,
    games: list[str],
    vacuum: bool,
    dry_run: bool,
    json: bool,
    by_spark: bool,
    force: bool,
    wait: bool,
) -> None:
    """Join small files, remove old ones, retire old rows of bronze; streams may run meanwhile."""
    require_safe(settings.maintain.kept, force=force or dry_run or not vacuum)
    wanted = Vacuum.YES if vacuum else Vacuum.NO
    if dry_run:
        with session_to_look(settings, "maintain", by_spark=by_spark) as spark:
            layout, stop = layout_of(settings), threading.Event()
            _require_known(spark, layout, games)
            known = Control(spark, layout).known_games()
            upkeep = TableMaintainer(
                spark,
                layout,
                _request(settings, games, wanted, dry_run=True),
                game_offsets(spark, layout),
                _go_on,
                stop,
            )
            done = _maintained(upkeep, known, games, json)
    else:
        with command_context(settings, "maintain", Access.TURNS, wait=wait) as place:
            _require_known(place.spark, place.layout, games)
            stop, done = place.stop, _maintain_root(place, games, wanted, json)
    raise typer.Exit(_exit_code(done, stopped=stop.is_set()))


def maintain_if_due(place: CommandContext, stop_bronze: Callable[[], object] = lambda: None) -> None:
    """Maintain the tables where that is due; a failure is printed and logged, and the rounds continue.

    Args:
        stop_bronze: returns when bronze takes in nothing; called before tables are touched.
    """
    settings, now = place.settings.maintain, datetime.now(timezone.utc)
    try:
        due = next_due(count_from(place.layout, now), settings.interval)
        if due is None or due > now or place.stop.is_set():
            return
        require_safe(settings.kept, force=False)
        stop_bronze()
        _maintain_root(place, (), Vacuum.YES)
        if place.hold is not None:
            # what the fleet knows of the tables is old now
            place.hold.visits += 1
    except KeyboardInterrupt:
        # a signal came while another command had the root; nothing is under way
        if not place.stop.is_set():
            raise
    except Exception as error:  # nothing is lost by it, whatever it is
        _LOG.exception("maintenance failed")
        print_failure(f"maintenance failed: {as_demux_error(error)}")


def _maintain_root(
    place: CommandContext, games: Collection[str], vacuum: Vacuum, json: bool = False
) -> tuple[TableMaintenance, ...]:
    """Maintain the root and return the result of each table; other commands have the root in between."""
    request, offsets_of = (
        _request(place.settings, games, vacuum, dry_run=False),
        game_offsets(place.spark, place.layout),
    )
    upkeep = TableMaintainer(place.spark, place.layout, request, offsets_of, Pace(place, _STEP_S), place.stop)
    return _maintained(upkeep, place.control.known_games(), games, json)


def _request(settings: Settings, games: Collection[str], vacuum: Vacuum, *, dry_run: bool) -> MaintenanceRequest:
    now, threads = datetime.now(timezone.utc), settings.run.parallelism
    return MaintenanceRequest(settings.maintain, vacuum, dry_run, now, uuid.uuid4().hex, threads, whole=not games)


def _maintained(
    upkeep: TableMaintainer, known: Iterable[str], games: Collection[str], json: bool
) -> tuple[TableMaintenance, ...]:
    """Return the result of each table, once it is printed."""
    tables = tables_of(upkeep.layout, upkeep.request.settings, {names_of(game).key: game for game in known}, games)
    done: list[TableMaintenance] = []
    with console.status(Text("maintaining …")) as status:
        for one in upkeep.run(tables):
            done.append(one)
            status.update(Text(f"maintaining … {len(done)} of {len(tables)} tables"))
            _log(one)
    if json:
        print_json(done_content(done, upkeep.held_back, dry_run=upkeep.request.dry_run))
    else:
        console.print(done_text(done, upkeep.held_back, dry_run=upkeep.request.dry_run))
    return tuple(done)


def _log(done: TableMaintenance) -> None:
    if done.error is not None:
        _LOG.warning("maintenance of %s failed: %s", done.table.name, done.error)
    elif done.files_before != done.files_after or done.removed or done.rows:
        message = "maintenance of %s: %d files, then %d; %s old ones removed; %d rows out"
        _LOG.info(message, done.table.name, done.files_before, done.files_after, done.removed, done.rows)


def _require_known(spark: SparkSession | None, layout: Layout, games: Collection[str]) -> None:
    """Check that each game has a table or rows in bronze; raises `GameUnknown`."""
    from deserializer.redecode.redecoder import require_game

    for game in games:
        if not layout.storage.table_exists(layout.silver(names_of(game).key)):
            require_game(spark, layout, game)


def _go_on() -> None:
    """Give no way to other commands: what only looks holds none up."""


def _exit_code(done: Collection[TableMaintenance], *, stopped: bool) -> ExitCode:
    if errors := [one.error for one in done if one.error is not None]:
        return exit_code_of(errors)
    return ExitCode.INTERRUPTED if stopped else ExitCode.OK
