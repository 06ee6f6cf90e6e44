"""A line of the log for a collector: one JSON object, whatever is in it."""

from __future__ import annotations

import json
import logging
from io import StringIO
from typing import Any

import pytest

from demux.core.errors import GameUnknown
from demux.core.log_format import formatter_of


@pytest.fixture
def lines() -> tuple[logging.Logger, StringIO]:
    out, log = StringIO(), logging.Logger("demux")
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter_of(as_json=True))
    log.addHandler(handler)
    return log, out


def only(out: StringIO) -> dict[str, Any]:
    """The one line that was written."""
    (line,) = out.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize("game", ["chess", "two\nlines", '{"game": 1}', "\x1b[31mred", "шах", "\ud800"])
def test_a_record_is_one_object_on_one_line_whatever_the_game_is_called(
    lines: tuple[logging.Logger, StringIO], game: str
) -> None:
    log, out = lines
    log.warning("%s is late", game, extra={"game": game, "rows": 7})
    found = only(out)
    assert found["time"].endswith("+00:00")
    assert {name: found[name] for name in ("level", "logger", "thread", "message", "game", "rows")} == {
        "level": "WARNING",
        "logger": "demux",
        "thread": "MainThread",
        "message": f"{game} is late",
        "game": game,
        "rows": 7,
    }
    assert "table" not in found


def test_an_error_has_its_condition_and_its_trace(lines: tuple[logging.Logger, StringIO]) -> None:
    log, out = lines
    try:
        raise GameUnknown("There is no game go.", "See `demux status`.", game="go")
    except GameUnknown:
        log.exception("failed")
    found = only(out)
    assert found["condition"] == "GAME_UNKNOWN"
    assert "There is no game go." in found["exception"]
