"""What a request says it has found and removed; it never says whom it meant."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.table import Table

from demux.cli.repair.forget_text import FINAL, found_text, left_text, removed_text
from demux.operations.erasure.results import RemovedRows, SearchResult

HOSTILE = "[b]\x1b[31m\u202ego"


def printed(parts: Iterable[RenderableType]) -> list[str]:
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False, emoji=False)
    for part in parts:
        console.print(part, soft_wrap=not isinstance(part, Table))
    assert isinstance(console.file, io.StringIO)
    return [line.strip() for line in console.file.getvalue().splitlines() if line.strip()]


def test_what_was_found_is_a_line_for_each_game_that_has_something() -> None:
    found = [
        SearchResult("chess", silver=1200, bronze=1203, quarantine=3, unreadable=2, suspect=1, table_rows=9000),
        SearchResult(HOSTILE, silver=1, bronze=1, table_rows=2),
        SearchResult("go", table_rows=5),
        SearchResult("snooker", lacks=("user_name", "\x1b[31m")),
        SearchResult(None, unreadable=4),
    ]
    assert printed(found_text(found)) == [
        "game                   silver  bronze  quarantine  unreadable  of these suspect",
        "───────────────────────────────────────────────────────────────────────────────",
        "chess                   1,200   1,203           3           2                 1",
        r"[b]\u001b[31m\u202ego       1       1           0           0                 0",
        "(no game)                   0       0           0           4                 0",
        "1 game with nothing that is meant",
        r"1 game left out, whose tables have no \u001b[31m, user_name: snooker",
    ]


def test_many_games_are_cut_short_and_none_is_no_table() -> None:
    found = [SearchResult(f"game{number}", silver=1) for number in range(60)]
    lines = printed(found_text(found))
    assert (len(lines), lines[-1]) == (53, "and 10 more")
    lines = printed(removed_text([RemovedRows("a1", one.game, 1, 0, 0) for one in found]))
    assert (len(lines), lines[-4:-2]) == (56, ["and 10 more", "rows removed      60       0           0"])
    assert printed(found_text([SearchResult("go"), SearchResult(None)])) == ["1 game with nothing that is meant"]
    assert printed(found_text([])) == []


def test_what_was_removed_is_summed_and_what_is_still_to_be_done_is_said() -> None:
    removed = [
        RemovedRows("a1", "chess", 1200, 1203, 3),
        RemovedRows("a1", None, 0, 0, 2),
        RemovedRows("b2", HOSTILE, 1, 1, 0),
    ]
    assert printed(removed_text(removed)) == [
        "game                   silver  bronze  quarantine",
        "─────────────────────────────────────────────────",
        "chess                   1,200   1,203           3",
        "(no game)                   0       0           2",
        r"[b]\u001b[31m\u202ego       1       1           0",
        "rows removed            1,201   1,204           5",
        "2 requests done: a1, b2 (control/removed, control/forget)",
        FINAL,
    ]


def test_why_the_command_must_be_run_again_is_said() -> None:
    found = [
        SearchResult("chess", unsearched=1),
        SearchResult("go", unsearched=1999, unreadable=5),
        SearchResult(None, suspect=1),
    ]
    waits, suspect = printed(left_text(found, unreadable_too=False))
    assert waits.startswith("2,000 rows of bronze could not be searched, as they are not decoded yet")
    assert suspect.startswith("Unreadable, with one of the texts in the bytes: 1 row of quarantine.")
    assert printed(left_text(found, unreadable_too=True)) == [waits]
    assert printed(left_text([SearchResult("go", unreadable=5)], unreadable_too=False)) == []
