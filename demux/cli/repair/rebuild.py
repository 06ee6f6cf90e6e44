"""`demux rebuild`: make a table again from where it came from."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.command import ROOT, SET, SETTINGS, TAKE_TURNS, command_context, console, settings_of
from demux.core.error_mapping import named
from demux.core.errors import SettingsInvalid
from demux.core.root.lock import Access


def rebuild(
    game: str | None = typer.Option(None, "--game", help="Make this game's silver table again from bronze."),
    bronze: bool = typer.Option(False, "--bronze", help="Make bronze again from its source, and empty all silver."),
    accept_gaps: bool = typer.Option(
        False, "--accept-gaps", help="With --bronze: also where the source does not have all of bronze any more."
    ),
    accept_return: bool = typer.Option(
        False, "--accept-return", help="With --bronze: also where records would come back that `demux forget` removed."
    ),
    accept_loss: bool = typer.Option(
        False, "--accept-loss", help="With --game: also where bronze lacks rows that its table has; they are lost."
    ),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    wait: bool = TAKE_TURNS,
) -> None:
    """Make a table again from where it came from: after a lost checkpoint, or to decode everything again.

    A game's table is made beside the one that is there, and takes its place in one change.

    Example: `demux rebuild --game chess`
    """
    from bronze_ingest.rebuild import rebuild_bronze
    from deserializer.redecode.redecoder import Redecoder
    from deserializer.redecode.redecoder import rebuild as rebuild_game

    if (game is None) == (not bronze):
        raise SettingsInvalid("Say what to rebuild.", "Give either --game NAME or --bronze.")
    access = Access.ALONE if bronze else Access.TURNS
    with command_context(settings_of(settings_file, root, changes), "rebuild", access, wait=wait) as place:
        with console.status("rebuilding …"):
            try:
                if game is None:
                    took_in = rebuild_bronze(
                        place.spark, place.settings, accept_gaps=accept_gaps, accept_return=accept_return
                    )
                    text = f"{took_in.rows_in:,} records: {took_in.rows_bronze:,} to bronze; now `demux run`"
                else:
                    redecoder = Redecoder(
                        place.spark, place.layout, place.schemas, place.settings.run.sink, place.tables
                    )
                    report = rebuild_game(redecoder, game, accept_loss=accept_loss)
                    text = (
                        f"{report.rows_in:,} rows: {report.rows_silver:,} to silver, "
                        f"{report.rows_quarantined:,} to quarantine"
                    )
            except Exception as error:
                raise named(error) from error
        console.print(text)
