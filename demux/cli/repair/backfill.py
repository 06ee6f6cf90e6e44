"""`demux backfill`: decode days of games again, or fill columns that came after the rows."""

from __future__ import annotations

from datetime import datetime, timezone

from demux.cli.command import command_context, console, each_game, session_to_look
from demux.cli.repair.backfill_days import Backfilling, print_estimate, print_status
from demux.core.errors import SettingsInvalid
from demux.core.names import names_of
from demux.core.root.layout import layout_of
from demux.core.root.lock import Access
from demux.core.settings.settings import Settings
from demux.core.time_expressions import moment_of
from demux.pipeline.context import CommandContext
from deserializer.offsets.bronze_days import plain_bronze
from deserializer.redecode.backfill_plan import BackfillRequest, request_backfill


def backfill(
    settings: Settings,
    game: list[str],
    since: str | None,
    until: str | None,
    rescued: bool,
    status: bool,
    dry_run_only: bool,
    json: bool,
    wait: bool,
) -> None:
    """Decode days again from bronze, as they are by the schemas and settings of now; readers see one change a step."""
    ways = [rescued, status, since is not None or until is not None]
    if sum(ways) != 1 or (dry_run_only and not ways[2]):
        raise SettingsInvalid(
            "Say what to do again: days, or columns.",
            "Give --from, --to or both; or --rescued; or --status. With days, --dry-run says how much that is.",
        )
    if json and not (status or dry_run_only):
        raise SettingsInvalid("--json is of --status and --dry-run.", "Give one of the two, or leave out --json.")
    if status:
        with session_to_look(settings, "backfill") as spark:
            print_status(spark, layout_of(settings), settings.run.parallelism, json)
    elif rescued:
        with command_context(settings, "backfill", Access.TURNS, wait=wait) as place:
            _from_rescued(place, game)
    elif dry_run_only:
        wanted, layout = _asked(game, since, until), layout_of(settings)
        by_spark = layout.storage.table_exists(layout.bronze) and plain_bronze(layout) is None
        with session_to_look(settings, "backfill", by_spark=by_spark) as spark:
            print_estimate(spark, layout, wanted, settings.run.parallelism, json)
    else:
        wanted = _asked(game, since, until)
        with command_context(settings, "backfill", Access.TURNS, wait=wait) as place:
            Backfilling(place, wanted).run()


def _asked(games: list[str], since: str | None, until: str | None) -> BackfillRequest:
    now = datetime.now(timezone.utc)
    first, last = (
        None if text is None else moment_of(text, now, option) for text, option in ((since, "--from"), (until, "--to"))
    )
    return request_backfill(games, first, last)


def _from_rescued(place: CommandContext, game: list[str]) -> None:
    from demux.core.delta.bronze_games import games_in_bronze
    from deserializer.redecode.rescue_backfill import backfill_rescued

    spark, layout = place.spark, place.layout

    def fill(name: str) -> str:
        report = backfill_rescued(spark, layout, place.schemas, name, place.settings.run.sink)
        return f"{report.filled:,} rows filled, {report.left:,} still hold something"

    def has_table(name: str) -> bool:
        return layout.storage.table_exists(layout.silver(names_of(name).key))

    games = [*dict.fromkeys(game)] or [*filter(has_table, sorted(games_in_bronze(spark, layout)))]
    if not games:
        console.print("no game has a table")
    each_game(place, games, "filling", fill)
