"""The status on a terminal: what needs action comes first, and no name is more than a name."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from demux.cli.inspect.status import status_text
from demux.operations.status.facts import Facts, TableFacts
from demux.operations.status.model import Status
from demux.operations.status.summary import status_of
from tests.support.data.statuses import NOW, WORSE, busy, known, record

Golden = Callable[[str, str], None]


def shown(status: Status, most: int | None = None, width: int = 120) -> str:
    """The text as a terminal of this width without colours shows it."""
    out = StringIO()
    Console(file=out, width=width, highlight=False, color_system=None).print(status_text(status, most))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def status(*names: str, **facts: object) -> Status:
    games = {name: known(name) for name in names}
    return status_of("/data/demux", replace(Facts(games=games), **facts), NOW)  # type: ignore[arg-type]


def test_the_most_urgent_games_come_first_and_each_problem_is_said_once(golden: Golden) -> None:
    golden("cli/status.txt", shown(busy(40)))


def test_only_so_many_games_are_shown_and_the_sums_are_of_all() -> None:
    lines = shown(busy(400), 5).splitlines()
    assert "395 games more: `demux status --all`" in lines
    assert sum("failed  " in line for line in lines) == 5
    assert any(line.split()[:2] == ["400", "games"] for line in lines)


def test_an_empty_root_is_a_table_without_games(golden: Golden) -> None:
    golden("cli/status_empty.txt", shown(status()))


def test_rows_that_were_retired_came_in_and_do_not_wait() -> None:
    table = {"chess": TableFacts(1, 100, 7)}
    text = shown(status("chess", silver=table, retired={"chess": 7}))
    lines = [line.split() for line in text.splitlines() if line.strip()]
    assert ["chess", "current", "7", "7", "0"] in [line[:5] for line in lines]
    assert lines[-1] == ["retired", "from", "bronze,", "being", "old:", "chess", "7"]


def test_what_cannot_be_read_is_a_question_mark_and_a_sentence() -> None:
    text = shown(replace(status("chess", bronze=None, unreadable=frozenset({"chess"})), notes=("The table is odd.",)))
    assert text.splitlines()[0] == "The table is odd."
    assert [line.split()[:5] for line in text.splitlines() if line.strip().startswith("chess")] == [
        ["chess", "current", "?", "0", "?"]
    ]


@pytest.mark.parametrize("width", [40, 120])
@given(st.lists(st.sampled_from(WORSE) | st.text(st.characters(), min_size=1, max_size=60), min_size=1, max_size=3))
def test_no_name_can_move_the_cursor_or_make_a_line_wider_than_the_terminal(width: int, names: list[str]) -> None:
    unique = [name for name in dict.fromkeys(names) if not any("\ud800" <= letter <= "\udfff" for letter in name)]
    failed = [record(name, error=("C", name)) for name in unique[:1]]
    text = shown(status(*unique, records=failed), width=width)
    categories = {unicodedata.category(character) for line in text.split("\n") for character in line}
    assert categories.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
    assert max(cell_len(line) for line in text.split("\n")) <= width
