"""One game after the other: how each ended is said, and why the first one failed comes last."""

from __future__ import annotations

import pytest

from demux.cli.each_game import each_game
from demux.errors import GameUnknown


def test_a_failure_stops_no_other_game_and_the_first_one_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []

    def act(game: str) -> str:
        done.append(game)
        if game.startswith("bad"):
            raise GameUnknown(f"No {game}.", "Look.")
        return "well"

    with pytest.raises(GameUnknown, match="No bad 1"):
        each_game(["a", "bad 1", "bad 2", "b\n"], "trying", act)
    assert done == ["a", "bad 1", "bad 2", "b\n"]
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == ("a: well", "b\\u000a: well")
    assert "No bad 2." in " ".join(lines)


def test_nothing_is_said_of_no_games(capsys: pytest.CaptureFixture[str]) -> None:
    each_game([], "trying", lambda game: game)
    assert capsys.readouterr().out == ""
