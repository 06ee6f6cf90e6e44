"""What a round did, for the terminal and as JSON; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from demux.cli.output.documents.repairs import DecodedGameJson, RoundJson
from demux.cli.output.print_json import error_json
from demux.cli.output.tables import failure_lines, new_table, number_cell, text_cell
from demux.core.text import counted, printable

if TYPE_CHECKING:
    from demux.core.reports import GameReport
    from demux.pipeline.round import Round
    from demux.pipeline.task_pool import TaskEnd


def round_table(result: Round, seconds: float) -> RenderableType:
    """Return what a round did: a line for each game that had new rows or failed, failures with their remedy."""
    took_in = result.ingested
    # a game that failed, or was rebuilt since, is looked at although it may have nothing new
    busy = [end for end in result.ended if end.report is None or end.report.rows_in]
    lines: list[RenderableType] = [
        Text(
            f"bronze: {took_in.rows_in:,} records in, {took_in.rows_bronze:,} to bronze, "
            f"{took_in.rows_quarantined:,} to quarantine"
        )
    ]
    if busy:
        table = new_table("game", ">rows in", ">silver", ">quarantine", ">seconds")
        for end in busy:
            report = end.report
            counts = (report.rows_in, report.rows_silver, report.rows_quarantined) if report else ()
            cells = map(number_cell, counts) if report else ("failed", "", "")
            table.add_row(text_cell(end.task.game), *cells, f"{end.seconds:.1f}")
        lines.append(table)
    behind = {end.task.game: end.report.rows_waiting for end in result.ended if end.report and end.report.rows_waiting}
    lines += [
        Text(f"{printable(game)}: about {rows:,} rows wait for the next round", "yellow")
        for game, rows in behind.items()
    ]
    lines += [Text(line, "red") for line in failures_of(result)]
    if result.plan.waiting:
        lines.append(Text(f"{len(result.plan.waiting)} games wait in bronze, see `demux status`", "yellow"))
    idle, left = (len(result.plan.tasks) - len(ended) for ended in (busy, result.ended))
    rest = f"{idle} had none" if result.complete else f"the other {left} come in the next round"
    lines.append(Text(f"{counted(len(busy), 'game')} had new rows, {rest}; {seconds:.1f} s"))
    return Group(*lines)


def failures_of(result: Round) -> list[str]:
    """Return a line for each different failure."""
    errors = ((end.task.game, end.error) for end in result.ended if end.error is not None)
    return failure_lines((game, f"{error.condition} {error.message} {error.remedy}") for game, error in errors)


def round_content(result: Round, seconds: float) -> RoundJson:
    """Return the same as JSON data."""
    return {
        "bronze": result.ingested,
        "games": [game_content(end) for end in result.ended],
        "waiting": [waiting.game for waiting in result.plan.waiting],
        "complete": result.complete,
        "seconds": round(seconds, 3),
    }


def game_content(end: TaskEnd[GameReport]) -> DecodedGameJson:
    """Return how a game's task ended as JSON data."""
    report = end.report
    return {
        "game": end.task.game,
        "rows_in": report.rows_in if report else 0,
        "rows_silver": report.rows_silver if report else 0,
        "rows_quarantined": report.rows_quarantined if report else 0,
        "rows_waiting": report.rows_waiting if report else 0,
        "seconds": round(end.seconds, 3),
        "error": None if end.error is None else error_json(end.error),
    }
