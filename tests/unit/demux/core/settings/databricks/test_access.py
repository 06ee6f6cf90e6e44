"""The settings of the grants: what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from demux.core.errors import SettingsInvalid
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings


def test_nobody_reads_anything_unless_it_is_said() -> None:
    assert (Settings().grants.games, Settings().grants.patterns) == ({}, {})


def test_readers_come_from_the_file_by_exact_name_and_by_pattern(tmp_path: Path) -> None:
    file = tmp_path / "demux.yml"
    file.write_text(
        "grants:\n  games: {'[x]*': [a, b@example.org]}\n  patterns:\n    puzzle_*: [c]\n", encoding="utf-8"
    )
    grants = load(file, {}, {}).grants
    assert grants.games == {"[x]*": ("a", "b@example.org")}
    assert grants.patterns == {"puzzle_*": ("c",)}


def test_all_mistakes_are_said_at_once() -> None:
    games = {"chess": [], "go": [" "], "two\nlines": ["x"], "tag": ["{{job.id}}"]}
    with pytest.raises(SettingsInvalid) as caught:
        load(None, {}, {"grants.games": games, "grants.patterns": {"": ["x"]}})
    assert caught.value.message.splitlines() == [
        "command line: grants.games.chess: a list: expected one principal or more",
        "command line: grants.games.go.0: ' ': expected the name of a principal",
        "command line: grants.games.tag.0: '{{job.id}}': expected the name of a principal",
        "command line: grants.games.two\\u000alines.[key]: 'two\\nlines': The game name has a control "
        "character (U+000A) at position 4.",
        "command line: grants.patterns..[key]: '': expected some text",
    ]
