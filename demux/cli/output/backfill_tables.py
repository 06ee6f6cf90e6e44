"""What backfills have done, for the terminal and as JSON; pure."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from demux.cli.output.documents.repairs import BackfillJson
from demux.cli.output.tables import new_table, number_cell, text_cell
from demux.core.text import first_few
from deserializer.redecode.backfill_plan import Backfill, Day, DayState


def backfill_table(backfill: Backfill) -> RenderableType:
    """Return what a backfill has done, in all its runs: a line for each game."""
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
