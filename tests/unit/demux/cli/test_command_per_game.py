"""One game after the other: how each ended is said, and why the first one failed comes last."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import cast

import pytest
import typer

from demux.cli.command import Pace, each_game
from demux.core.errors import ExitCode, GameUnknown
from demux.pipeline.context import CommandContext


@dataclass
class Turns:
    """The part of a workplace that counts here."""

    stop: threading.Event = field(default_factory=threading.Event)
    times_away: int = 0

    def give_way(self) -> None:
        self.times_away += 1


def place(turns: Turns | None = None) -> CommandContext:
    return cast(CommandContext, turns or Turns())


def test_a_failure_stops_no_other_game_and_the_first_one_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []

    def act(game: str) -> str:
        done.append(game)
        if game.startswith("bad"):
            raise GameUnknown(f"No {game}.", "Look.")
        return "well"

    with pytest.raises(GameUnknown, match="No bad 1"):
        each_game(place(), ["a", "bad 1", "bad 2", "b\n"], "trying", act)
    assert done == ["a", "bad 1", "bad 2", "b\n"]
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == ("a: well", "b\\u000a: well")
    assert "No bad 2." in " ".join(lines)


def test_nothing_is_said_of_no_games(capsys: pytest.CaptureFixture[str]) -> None:
    each_game(place(), [], "trying", lambda game: game)
    assert capsys.readouterr().out == ""


def test_others_may_have_the_root_between_two_games_and_a_stop_ends_it_there() -> None:
    turns, done = Turns(), list[str]()

    def act(game: str) -> str:
        done.append(f"{game} after {turns.times_away}")
        if game == "b":
            turns.stop.set()
        return "well"

    with pytest.raises(typer.Exit) as ended:
        each_game(place(turns), ["a", "b", "c"], "trying", act)
    assert ended.value.exit_code == ExitCode.INTERRUPTED
    assert done == ["a after 0", "b after 1"]


def test_others_may_have_the_root_each_time_that_we_had_it_long_enough() -> None:
    turns, now = Turns(), [100.0]
    pace = Pace(place(turns), 5.0, lambda: now[0])
    away = []
    for now[0] in (101.0, 105.0, 105.5, 110.0, 110.6, 110.7):
        pace()
        away.append(turns.times_away)
    assert away == [0, 0, 1, 1, 2, 2]
