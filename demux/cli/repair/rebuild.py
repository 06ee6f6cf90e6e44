"""`demux rebuild`: make a table again from where it came from."""

from __future__ import annotations

from demux.cli.command import command_context, console
from demux.core.error_mapping import as_demux_error
from demux.core.errors import SettingsInvalid
from demux.core.root.lock import Access
from demux.core.settings.settings import Settings


def rebuild(
    settings: Settings,
    game: str | None,
    bronze: bool,
    accept_gaps: bool,
    accept_return: bool,
    accept_loss: bool,
    wait: bool,
) -> None:
    """Make a table again from where it came from: after a lost checkpoint, or to decode everything again."""
    from bronze_ingest.rebuild import rebuild_bronze
    from deserializer.redecode.redecoder import Redecoder
    from deserializer.redecode.redecoder import rebuild as rebuild_game

    if (game is None) == (not bronze):
        raise SettingsInvalid("Say what to rebuild.", "Give either --game NAME or --bronze.")
    access = Access.ALONE if bronze else Access.TURNS
    with command_context(settings, "rebuild", access, wait=wait) as place:
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
                raise as_demux_error(error) from error
        console.print(text)
