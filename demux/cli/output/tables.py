"""Tables for the terminal; every name from outside is made printable and is never markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from demux.core.control.freshness import Freshness
from demux.core.text import duration_text, first_few, printable

# characters of a column that folds, at least
_LEAST_FOLDED = 8
_MOST_NAMES = 5
# which line of a plain table is the rule
_RULE = 2


class FittingTable(Table):
    """A table that becomes a list, of each row the first cell and then the others, on a terminal that is too narrow.

    In a file or a pipe its cells are as wide as they are: rich would take a millisecond a row to fit them to a width.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or the list."""
        if not console.is_terminal:
            lines = self._plain_lines()
            # the rule below the heads is as wide as the widest row
            if len(lines[_RULE]) <= options.max_width:
                yield Segment("".join(f"{line}\n" for line in lines))
                return
        if self._least_width() <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        heads = [column.header for column in self.columns[1:]]
        for first, *others in zip(*(column.cells for column in self.columns), strict=True):
            values = [f"{head} {_line(cell)}" for head, cell in zip(heads, others, strict=True) if _line(cell)]
            yield Text(_line(first), "bold", overflow="fold")
            yield Padding(Text(", ".join(values), overflow="fold"), (0, 0, 0, 2))

    def _plain_lines(self) -> list[str]:
        heads = [str(column.header) for column in self.columns]
        rows = [[str(cell).split("\n") for cell in row] for row in zip(*(c.cells for c in self.columns), strict=True)]
        cells = [[head, *(line for row in rows for line in row[at])] for at, head in enumerate(heads)]
        widths = [max(map(cell_len, column)) for column in cells]
        lines = ["", self._plain_line(heads, widths), f" {'─' * (sum(widths) + 2 * len(widths) - 2)}"]
        for row, described in zip(rows, self.rows, strict=True):
            lines += [self._plain_line(parts, widths) for parts in zip_longest(*row, fillvalue="")]
            lines += [""] if described.end_section else []
        return [*lines, ""]

    def _plain_line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
        padded = [
            blank + cell if column.justify == "right" else cell + blank
            for cell, blank, column in zip(cells, blanks, self.columns, strict=True)
        ]
        return f" {'  '.join(padded)}".rstrip()

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


def freshness_text(freshness: Freshness) -> str:
    """Return the median age and that which 95 of 100 rows have at most; empty without rows."""
    p50_s, p95_s = freshness.p50_s, freshness.p95_s
    return "" if p50_s is None or p95_s is None else f"{duration_text(p50_s)}, {duration_text(p95_s)}"


def counts_text(counts: Mapping[str, int], between: str = ", ") -> Text:
    """Return how many there are of each, by name."""
    return Text(between.join(f"{name} {count:,}" for name, count in sorted(counts.items())))


def _line(cell: RenderableType) -> str:
    return str(cell).replace("\n", ", ")


def failure_lines(failures: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each different sentence: what fails for all names is said once.

    Args:
        failures: names with their sentences; both come from outside.
    """
    names: dict[str, list[str]] = {}
    for name, sentence in failures:
        names.setdefault(sentence, []).append(printable(name))
    return [f"failed: {first_few(those, _MOST_NAMES)}: {printable(sentence)}" for sentence, those in names.items()]
