"""Tables for the terminal; every name from outside is made printable and is never markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from demux.core.text import counted, first_few, printable
from deserializer.redecode.backfill_plan import Backfill, Day, DayState

if TYPE_CHECKING:
    from demux.pipeline.round import Round

# characters of a column that folds, at least
_LEAST_FOLDED = 8


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
    errors = {end.task.game: end.error for end in result.ended if end.error is not None}
    lines += _error_lines({game: f"{e.condition} {e.cause} {e.remedy}" for game, e in errors.items()})
    if result.plan.waiting:
        lines.append(Text(f"{len(result.plan.waiting)} games wait in bronze, see `demux status`", "yellow"))
    idle, left = (len(result.plan.tasks) - len(ended) for ended in (busy, result.ended))
    rest = f"{idle} had none" if result.complete else f"the other {left} come in the next round"
    lines.append(Text(f"{counted(len(busy), 'game')} had new rows, {rest}; {seconds:.1f} s"))
    return Group(*lines)


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


def _error_lines(errors: Mapping[str, str]) -> list[Text]:
    """Return a line for each different sentence: what fails for all games is said once."""
    games: dict[str, list[str]] = {}
    for game, sentence in errors.items():
        games.setdefault(sentence, []).append(printable(game))
    return [Text(f"failed: {', '.join(names)}: {printable(text)}", "red") for text, names in games.items()]


class FittingTable(Table):
    """A table that becomes a list, of each row the first cell and then the others, on a terminal that is too narrow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or the list."""
        if self._least_width() <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        heads = [column.header for column in self.columns[1:]]
        for first, *others in zip(*(column.cells for column in self.columns), strict=True):
            values = [f"{head} {_line(cell)}" for head, cell in zip(heads, others, strict=True) if _line(cell)]
            yield Text(_line(first), "bold", overflow="fold")
            yield Padding(Text(", ".join(values), overflow="fold"), (0, 0, 0, 2))

    def _least_width(self) -> int:
        # a column has a space behind it, and the box another one before it
        return 1 + sum(2 + self._least_width_of(column) for column in self.columns)

    def _least_width_of(self, column: Column) -> int:
        natural = max(cell_len(line) for cell in (column.header, *column.cells) for line in str(cell).split("\n"))
        return natural if column.no_wrap else min(natural, _LEAST_FOLDED)


def new_table(*columns: str) -> FittingTable:
    """Return an empty table, as every command prints one.

    Args:
        columns: the heads; `>` before one marks numbers, `=` words that stay whole, and others fold.
    """
    table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        justify: Literal["right", "left"] = "right" if column.startswith(">") else "left"
        table.add_column(column.lstrip(">="), justify=justify, overflow="fold", no_wrap=column[0] in ">=")
    return table


def text_cell(name: str) -> Text:
    """Return a name from outside as a cell: printable, and never markup."""
    return Text(printable(name))


def number_cell(value: int | None) -> Text:
    """Return a number as a cell; `?` where it is not known."""
    return Text("?" if value is None else f"{value:,}")


def counts_text(counts: Mapping[str, int], between: str = ", ") -> Text:
    """Return how many there are of each, by name."""
    return Text(between.join(f"{name} {count:,}" for name, count in sorted(counts.items())))


def _line(cell: RenderableType) -> str:
    return str(cell).replace("\n", ", ")
