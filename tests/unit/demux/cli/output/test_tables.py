"""Tables on a terminal of 100 columns, with names that would like to be more than names."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from demux.cli.output.reports import backfill_table, backfills_table, round_table
from demux.core.control.freshness import Freshness
from demux.core.errors import CheckpointLost, DemuxError, RegistryUnavailable
from demux.core.reports import GameReport, IngestReport
from demux.core.settings.games import GamesSettings
from demux.pipeline.round import Round
from demux.pipeline.task_pool import TaskEnd
from deserializer.offsets.days import DayCounts
from deserializer.redecode.backfill_plan import (
    Backfill,
    BackfillRequest,
    Day,
    DayState,
)
from install_workflow.planning.plan import Task, make_plan

Golden = Callable[[str, str], None]

WIDTH = 100
# half of the rows are a second old at their commit, the others four
FRESH = Freshness.of({80: 1, 96: 1})
HOSTILE = (
    "../../etc",
    "[bold red]markup[/]",
    "\x1b[31mred\x1b[0m",
    "two\nlines",
    "right\u202eto left",
    "将棋",
    "🎮",
    "x" * 80,
)


def on_terminal(table: RenderableType) -> str:
    """The text as a terminal of `WIDTH` columns without colours shows it."""
    out = StringIO()
    Console(file=out, width=WIDTH, highlight=False, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def ended(game: str, rows: int = 0, quarantined: int = 0, error: DemuxError | None = None) -> TaskEnd[GameReport]:
    report = None if error else GameReport(game, rows, rows - quarantined, quarantined, (1,), freshness=FRESH)
    return TaskEnd(Task(game, "deserialize", "cluster_001"), report, error, 1.25)


def round_of(*ends: TaskEnd[GameReport], idle: int = 0, complete: bool = True, limit: int = 1000) -> Round:
    games = [end.task.game for end in ends] + [f"~idle{number}" for number in range(idle)]
    plan = make_plan(games, {}, GamesSettings(limit=limit), 20)
    return Round("r", IngestReport(12_345, 12_000, 345), plan, ends, complete)


def test_a_round_is_told_as_it_was_before(golden: Golden) -> None:
    done = [ended(game, 1_000_000, 10) for game in sorted(HOSTILE)]
    golden("cli/round.txt", on_terminal(round_table(round_of(*done, idle=3), 12.34)))


def test_failures_are_told_once_for_all_games_that_share_them(golden: Golden) -> None:
    silent = RegistryUnavailable("The registry does not answer.", "Try again later.")
    lost = CheckpointLost("The table /root/silver/go has lost its checkpoint.", "Run `demux rebuild --game go`.")
    ends = (ended("[b]chess", error=silent), ended("go", error=lost), ended("ludo", error=silent), ended("xo", 5))
    golden("cli/round_failed.txt", on_terminal(round_table(round_of(*ends), 3.0)))


def test_a_round_in_which_nothing_was_new_is_told_without_a_table(golden: Golden) -> None:
    golden("cli/round_idle.txt", on_terminal(round_table(round_of(idle=20), 0.5)))


def test_a_game_that_was_looked_at_for_nothing_had_no_new_rows() -> None:
    shown = on_terminal(round_table(round_of(ended("chess"), ended("go", 5), idle=2), 0.5))
    assert "1 game had new rows, 3 had none; 0.5 s" in shown
    assert "chess" not in shown


def test_a_round_that_was_stopped_does_not_say_that_the_others_had_nothing(golden: Golden) -> None:
    golden("cli/round_stopped.txt", on_terminal(round_table(round_of(ended("go", 5), idle=2, complete=False), 0.5)))


def test_a_round_with_games_that_wait_says_how_many(golden: Golden) -> None:
    golden("cli/round_waiting.txt", on_terminal(round_table(round_of(idle=5, limit=2), 0.5)))


names = st.text(st.characters(), min_size=1, max_size=60)


@given(st.lists(names, min_size=1, max_size=3, unique=True))
def test_no_name_can_move_the_cursor_or_make_a_line_wider_than_the_terminal(some: list[str]) -> None:
    ends = [ended(name, error=RegistryUnavailable(name, name)) for name in some]
    text = on_terminal(round_table(round_of(*ends, *(ended(name, 5) for name in some)), 0.5))
    shown = {unicodedata.category(character) for line in text.split("\n") for character in line}
    assert shown.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
    assert max(cell_len(line) for line in text.split("\n")) <= WIDTH


@given(st.text("ab[]/\\ ", max_size=20))
def test_a_name_is_never_markup(inside: str) -> None:
    name = f"[bold]{inside}[/bold]"
    assert name in on_terminal(round_table(round_of(ended(name, 1)), 1.0))


def test_a_backfill_is_told_by_game_and_backfills_by_what_is_left() -> None:
    first, begun = date(2026, 1, 1), datetime(2026, 2, 1, 12, 30, tzinfo=timezone.utc)
    done = (
        Day(HOSTILE[3], first, 1_000, DayState.DONE, DayCounts(1_000, 990, 10), 2.0),
        Day(HOSTILE[3], first + timedelta(days=1), 500, DayState.DONE, DayCounts(500, 500, 0), 1.0),
    )
    left = (Day("chess", first, 3_000), Day("chess", first + timedelta(days=1), 3_000, DayState.FAILED))
    one = Backfill("one", BackfillRequest((HOSTILE[3], "chess"), first, None), begun, (*done, *left))
    assert on_terminal(backfill_table(one)).splitlines()[3:] == [
        " two\\u000alines     2 of 2    1,500   1,490          10      3.0",
        " chess              0 of 2        0       0           0      0.0",
    ]
    new = Backfill("new", BackfillRequest((), None, first), begun, left)
    ended = Backfill("ended", BackfillRequest(("go",), first, first), begun, done)
    shown = on_terminal(backfills_table((one, new, ended), 2)).splitlines()
    assert [" ".join(line.split()) for line in shown if line.startswith(" 2026")] == [
        "2026-02-01 12:30 two\\u000a 2026-01-01 2 of 4 1 1,500 of 7,500 about 12 s",
        "2026-02-01 12:30 all 2026-01-01 0 of 2 1 0 of 6,000 ?",
        "2026-02-01 12:30 go 2026-01-01 2026-01-01 2 of 2 0 1,500 of 1,500",
    ]
