"""`demux status` and `demux show`: look, change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from pyspark.sql import Row
from pyspark.sql import functions as F
from rich.table import Table
from rich.text import Text

from demux.cli.command import ROOT, SET, SETTINGS, command_context, console, settings_of
from demux.cli.inspect.serve import write_page
from demux.cli.output.tables import overview_table
from demux.core.errors import GameUnknown
from demux.core.names import names_of
from demux.core.root.lock import Access
from demux.core.schemas.registry_selection import game_schemas
from demux.core.storage import table_exists
from demux.core.text import printable
from demux.operations.reconcile.record_counts import overview
from demux.pipeline.context import CommandContext
from install_workflow.planning.round_plan import preview_round


def status(
    html: Path | None = typer.Option(
        None, "--html", help="Write a page for a browser instead, from what the tables' logs say; starts no Spark."
    ),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Show where every record is, game by game; which games wait and why; what failed and what to do.

    Example: `demux status --html status.html`
    """
    settings = settings_of(settings_file, root, changes)
    if html is not None:
        write_page(settings, html)
        return
    with command_context(settings, "status", Access.LOOK) as place:
        print_status(place)


def show(
    game: str = typer.Argument(..., help="The exact game name."),
    rows: int = typer.Option(10, min=1, max=1000, help="How many rows."),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Show the newest rows of a game's silver table.

    Example: `demux show chess --rows 3`
    """
    with command_context(settings_of(settings_file, root, changes), "show", Access.LOOK) as place:
        path = place.layout.silver(names_of(game).key)
        if not table_exists(place.spark, path):
            raise GameUnknown(
                f"There is no silver table of a game {printable(game)!r}.",
                "See `demux status` for the games; names are exact. `demux run` makes the tables.",
                game=game,
            )
        frame = place.spark.read.format("delta").load(path)
        newest = frame.orderBy(F.col("_decoded_at").desc(), F.col("_offset").desc_nulls_last()).limit(rows)
        console.print(_rows_table(frame.columns, newest.collect()))
        console.print(f"{frame.count():,} rows in {path}", soft_wrap=True)


def print_status(place: CommandContext) -> None:
    """Print where every record is, counted in the tables."""
    with console.status("counting …"):
        plan = preview_round(place.spark, place.settings, place.control).plan
        counted = overview(place.spark, place.layout, place.control, lambda game: game_schemas(game, place.settings))
    console.print(overview_table(counted, {waiting.game: waiting.reason for waiting in plan.waiting}))


def _rows_table(columns: list[str], rows: Sequence[tuple[object, ...]]) -> Table:
    """Return one line for each column and one column for each row: a game may have many columns."""
    table = Table(show_header=False)
    table.add_column("column", style="bold")
    for _ in rows:
        table.add_column(overflow="fold")
    for position, name in enumerate(columns):
        table.add_row(Text(printable(name)), *(Text(printable(_value(row[position]))) for row in rows))
    return table


def _value(value: object) -> str:
    """Return a value as people read it; bytes in hex, a struct as `{name: value}`."""
    match value:
        case None:
            return ""
        case Row():
            return f"{{{', '.join(f'{name}: {_value(part)}' for name, part in value.asDict().items())}}}"
        case dict():
            return f"{{{', '.join(f'{_value(key)}: {_value(part)}' for key, part in value.items())}}}"
        case list():
            return f"[{', '.join(_value(part) for part in value)}]"
        case bytes() | bytearray():
            return value.hex(" ")
        case _:
            return str(value)
