"""The text of what `demux forget` found and removed; it never names the person. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from demux.cli.output.documents.repairs import ForgetJson
from demux.cli.output.tables import new_table
from demux.core.text import count_text, first_few, printable
from demux.operations.erasure.results import RemovedRows, SearchResult

_MOST_LINES = 50
_WITHOUT_GAME = "(no game)"

FINAL = (
    "Old files keep the bytes until they are vacuumed: `demux maintain --vacuum`, once what you keep is over "
    "(maintain.keep); the least and greatest values of a column are in a table's log until that is cleaned. The source "
    "(topic, table, archive), tables made from silver, copies and backups are not touched."
)


def found_text(results: Sequence[SearchResult]) -> Iterator[RenderableType]:
    """Yield the text of a search: a line for each game with a match, and the games that could not be searched."""
    shown = [one for one in results if one.rows or one.unreadable]
    if shown:
        yield _found_table(shown)
    searched = [one for one in results if one.game is not None and not one.lacks]
    clean = sum(not one.rows and not one.unreadable for one in searched)
    if clean:
        yield Text(f"{count_text(clean, 'game')} with nothing that is meant")
    yield from map(Text, _not_searched(results))


def found_content(results: Iterable[SearchResult]) -> ForgetJson:
    """Return the same as JSON data."""
    return {"games": list(results)}


def removed_text(removed: Sequence[RemovedRows]) -> Iterator[RenderableType]:
    """Yield the text of an erasure: a line for each game, and what is still to do."""
    table = new_table("game", ">silver", ">bronze", ">quarantine")
    for one in removed[:_MOST_LINES]:
        table.add_row(_name(one.game), f"{one.silver:,}", f"{one.bronze:,}", f"{one.quarantine:,}")
    if len(removed) > _MOST_LINES:
        table.add_row(Text(f"and {len(removed) - _MOST_LINES} more"))
    table.add_section()
    sums = (sum(one.silver for one in removed), sum(one.bronze for one in removed), sum(o.quarantine for o in removed))
    table.add_row(Text("rows removed", "bold"), *(f"{number:,}" for number in sums))
    yield table
    if removed:
        requests = sorted({one.request for one in removed})
        yield Text(
            f"{count_text(len(requests), 'request')} done: {', '.join(requests)} (control/removed, control/forget)"
        )
    yield Text(FINAL)


def left_text(results: Iterable[SearchResult], unreadable_too: bool) -> Iterator[Text]:
    """Yield why the command must be run again, or with more."""
    results = tuple(results)
    unsearched = sum(one.unsearched for one in results)
    suspect = 0 if unreadable_too else sum(one.suspect for one in results)
    if unsearched:
        yield Text(
            f"{count_text(unsearched, 'row')} of bronze could not be searched, as they are not decoded yet (a game "
            "that waits or fails: `demux status`): run this again once they are, with the same --where.",
            "yellow",
        )
    if suspect:
        yield Text(
            f"Unreadable, with one of the texts in the bytes: {count_text(suspect, 'row')} of quarantine. Look there "
            "(`demux quarantine show`), and give --unreadable-too to remove them as well.",
            "yellow",
        )


def _not_searched(results: Iterable[SearchResult]) -> Iterator[str]:
    results = tuple(results)
    lacking = [one for one in results if one.lacks]
    if lacking:
        columns = first_few(sorted({printable(path) for path in chain.from_iterable(one.lacks for one in lacking)}))
        names = first_few([printable(one.game or "") for one in lacking])
        yield f"{count_text(len(lacking), 'game')} left out, whose tables have no {columns}: {names}"


def _found_table(shown: Sequence[SearchResult]) -> Table:
    table = new_table("game", ">silver", ">bronze", ">quarantine", ">unreadable", ">of these suspect")
    for one in shown[:_MOST_LINES]:
        numbers = (one.silver, one.bronze, one.quarantine, one.unreadable, one.suspect)
        table.add_row(_name(one.game), *(f"{number:,}" for number in numbers))
    if len(shown) > _MOST_LINES:
        table.add_row(Text(f"and {len(shown) - _MOST_LINES} more"))
    return table


def _name(game: str | None) -> Text:
    return Text(_WITHOUT_GAME if game is None else printable(game))
