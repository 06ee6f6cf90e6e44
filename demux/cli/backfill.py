"""`demux backfill`: fill columns that came after the rows."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.each_game import each_game
from demux.cli.workplace import ROOT, SET, SETTINGS, TAKE_TURNS, console, settings_of, workplace
from demux.errors import SettingsInvalid
from demux.lock import Access
from demux.names import names_of
from demux.storage import table_exists


def backfill(
    rescued: bool = typer.Option(False, "--rescued", help="From what was kept in `_rescued`."),
    game: list[str] = typer.Option([], "--game", help="Only this game (exact name). May be repeated."),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    wait: bool = TAKE_TURNS,
) -> None:
    """Fill columns that a table got after its rows came; a column that has a value keeps it.

    Example: `demux backfill --rescued --game chess`
    """
    from deserializer.backfill import backfill_rescued
    from install_workflow.run import games_in_bronze

    if not rescued:
        raise SettingsInvalid("Say what to fill columns from.", "Give --rescued.")
    with workplace(settings_of(settings_file, root, changes), "backfill", Access.TURNS, wait=wait) as place:
        spark, layout = place.spark, place.layout

        def fill(name: str) -> str:
            report = backfill_rescued(spark, layout, place.schemas, name)
            return f"{report.filled:,} rows filled, {report.left:,} still hold something"

        def has_table(name: str) -> bool:
            return table_exists(spark, layout.silver(names_of(name).key))

        games = [*dict.fromkeys(game)] or [*filter(has_table, sorted(games_in_bronze(spark, layout)))]
        if not games:
            console.print("no game has a table")
        each_game(place, games, "filling", fill)
