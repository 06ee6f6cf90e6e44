from __future__ import annotations

from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from demux.cli.app import app
from demux.core.errors import SettingsInvalid

Golden = Callable[[str, str], None]
WORDS = ["size", "--games", "3000", "--rows", "2e9/day"]


def test_a_load_is_told_with_what_was_assumed(golden: Golden) -> None:
    result = CliRunner().invoke(app, [*WORDS, "--active", "500"], terminal_width=120)
    golden("cli/size.txt", result.stdout.rstrip())


def test_rounds_that_cannot_follow_so_soon_are_told() -> None:
    often, seldom = (CliRunner().invoke(app, [*WORDS, "--every", every]).stdout for every in ("0.1s", "5m"))
    assert "however many cores there are" in often
    assert "however many cores there are" not in seldom


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (["--rows", "2e9/parsec"], "--rows '2e9/parsec' is no number of rows a time."),
        (["--active", "3001"], "--active 3001 is not between 0 and the 3000 games."),
        (["--games", "-3"], "--games -3 is less than 1."),
        (["--every", "soon"], "--every 'soon' is not a time."),
    ],
)
def test_a_mistake_is_a_sentence_and_a_remedy(changed: list[str], sentence: str) -> None:
    refused = CliRunner().invoke(app, [*WORDS, *changed]).exception
    assert isinstance(refused, SettingsInvalid)
    assert refused.message == sentence
    assert refused.remedy
