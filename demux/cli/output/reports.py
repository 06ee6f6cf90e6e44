"""Rounds and backfills as text for people, and rounds as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from demux.cli.output.documents.repairs import BackfillJson, DecodedGameJson, RoundJson
from demux.cli.output.print_json import error_json
from demux.cli.output.tables import failure_lines, freshness_text, new_table, number_cell, text_cell
from demux.core.text import count_text, first_few, printable
from deserializer.redecode.backfill_plan import Backfill, Day, DayState

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
        table = new_table("game", ">rows in", ">silver", ">quarantine", ">seconds", ">fresh p50, p95")
        for end in busy:
            report = end.report
            counts = (report.rows_in, report.rows_silver, report.rows_quarantined) if report else ()
            cells = map(number_cell, counts) if report else ("failed", "", "")
            fresh = freshness_text(report.freshness) if report else ""
            table.add_row(text_cell(end.task.game), *cells, f"{end.seconds:.1f}", fresh)
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
    lines.append(Text(f"{count_text(len(busy), 'game')} had new rows, {rest}; {seconds:.1f} s"))
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
        "fresh_p50": _rounded(report.freshness.p50_s) if report else None,
        "fresh_p95": _rounded(report.freshness.p95_s) if report else None,
        "error": None if end.error is None else error_json(end.error),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def backfill_table(backfill: Backfill) -> RenderableType:
    """Return the result of a backfill over all its runs: a line for each game."""
    table = new_table("game", ">days done", ">rows in", ">silver", ">quarantine", ">seconds")
    by_game: dict[str, list[Day]] = {}
    for day in backfill.days:
        by_game.setdefault(day.game, []).append(day)
    for game, days in by_game.items():
        done = [day for day in days if day.state is DayState.DONE]
        counts = [day.counts for day in done]
        table.add_row(
            text_cell(game),
            Text(f"{len(done):,} of {len(days):,}"),
            number_cell(sum(one.rows_in for one in counts)),
            number_cell(sum(one.rows_silver for one in counts)),
            number_cell(sum(one.rows_quarantined for one in counts)),
            f"{sum(day.seconds for day in done):.1f}",
        )
    return table


def backfills_table(backfills: Iterable[Backfill], parallelism: int) -> RenderableType:
    """Return the progress of backfills: a line for each; of one that is not done, about how long the rest takes."""
    table = new_table("=begun (UTC)", "games", "=from", "=to", ">days done", ">failed", ">rows done", "=left")
    for one in backfills:
        done = sum(day.state is DayState.DONE for day in one.days)
        seconds = one.seconds_left(parallelism)
        left = "" if one.is_done else "?" if seconds is None else f"about {max(1, round(seconds)):,} s"
        table.add_row(
            f"{one.begun:%Y-%m-%d %H:%M}",
            text_cell(first_few(one.asked.games) if one.asked.games else "all"),
            str(one.asked.first or ""),
            str(one.asked.last or ""),
            Text(f"{done:,} of {len(one.days):,}"),
            number_cell(sum(day.state is DayState.FAILED for day in one.days)),
            Text(f"{one.rows(DayState.DONE):,} of {one.rows(*DayState):,}"),
            left,
        )
    return table


def backfill_content(one: Backfill, parallelism: int) -> BackfillJson:
    """Return the progress of a backfill as JSON data."""
    return {
        "id": one.id,
        "begun": one.begun.isoformat(),
        "games": list(one.asked.games),
        "first": None if one.asked.first is None else one.asked.first.isoformat(),
        "last": None if one.asked.last is None else one.asked.last.isoformat(),
        "days": len(one.days),
        "days_done": sum(day.state is DayState.DONE for day in one.days),
        "days_failed": sum(day.state is DayState.FAILED for day in one.days),
        "rows": one.rows(*DayState),
        "rows_done": one.rows(DayState.DONE),
        "seconds_left": None if one.is_done else one.seconds_left(parallelism),
    }
