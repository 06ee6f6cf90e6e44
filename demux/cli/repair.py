"""`demux quarantine replay` and `demux rebuild`: bring back what was set aside, or make a table again."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.text import Text

from demux.causes import Cause
from demux.cli.workplace import ROOT, SET, SETTINGS, WAIT, console, settings_of, workplace
from demux.errors import DemuxError, SettingsInvalid
from demux.failures import named
from demux.text import printable

quarantine = typer.Typer(help="Work with the records that were set aside.", no_args_is_help=True)

_REPLAYABLE = [
    Cause.UNKNOWN_SCHEMA,
    Cause.INVALID_SCHEMA,
    Cause.SCHEMA_CONFLICT,
    Cause.MALFORMED_PAYLOAD,
    Cause.INTERRUPTED,
]


@quarantine.callback()
def group() -> None:
    """Work with the records that were set aside."""


@quarantine.command("replay")
def replay(
    game: str | None = typer.Option(None, "--game", help="Only this game (exact name). Default: all games."),
    cause: list[Cause] = typer.Option(_REPLAYABLE, help="Only records of this cause. May be repeated."),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    wait: bool = WAIT,
) -> None:
    """Decode quarantined payloads again, once: what decodes now moves to silver, the rest stays with today's cause.

    Example: `demux quarantine replay --cause UNKNOWN_SCHEMA`
    """
    from deserializer.repair import games_in_quarantine
    from deserializer.repair import replay as replay_game

    failed: list[DemuxError] = []
    with workplace(settings_of(settings_file, root, changes), "quarantine replay", lock=True, wait=wait) as place:
        games = games_in_quarantine(place.spark, place.layout, cause)
        for name in games if game is None else [found for found in games if found == game]:
            try:
                with console.status(Text(f"decoding {printable(name)} …")):
                    report = replay_game(place.spark, place.layout, place.schemas, name, tuple(cause))
            except Exception as error:  # one game's failure must not stop its neighbours
                failed.append(named(error))
                console.print(f"{printable(name)}: {failed[-1]}", style="red")
                continue
            left = report.tried - report.decoded
            console.print(f"{printable(name)}: {report.decoded:,} decoded, {left:,} stay")
        if not games:
            console.print("nothing in quarantine has these causes")
    if failed:
        raise failed[0]


def rebuild(
    game: str | None = typer.Option(None, "--game", help="Make this game's silver table again from bronze."),
    bronze: bool = typer.Option(False, "--bronze", help="Make bronze again from its source, and empty all silver."),
    accept_gaps: bool = typer.Option(
        False, "--accept-gaps", help="With --bronze: also where the source does not have all of bronze any more."
    ),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    wait: bool = WAIT,
) -> None:
    """Make a table again from where it came from: after a lost checkpoint, or to decode everything anew.

    Example: `demux rebuild --game chess`
    """
    from bronze_ingest.repair import rebuild_bronze
    from deserializer.repair import rebuild as rebuild_game

    if (game is None) == (not bronze):
        raise SettingsInvalid("Say what to rebuild.", "Give either --game NAME or --bronze.")
    with workplace(settings_of(settings_file, root, changes), "rebuild", lock=True, wait=wait) as place:
        with console.status("rebuilding …"):
            try:
                if game is None:
                    took_in = rebuild_bronze(place.spark, place.settings, accept_gaps=accept_gaps)
                    text = f"{took_in.rows_in:,} records: {took_in.rows_bronze:,} to bronze; now `demux run`"
                else:
                    report = rebuild_game(place.spark, place.layout, place.schemas, game)
                    text = f"{report.rows_in:,} rows: {report.rows_silver:,} to silver"
            except Exception as error:
                raise named(error) from error
        console.print(text)
