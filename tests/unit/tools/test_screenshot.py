"""The pictures of the status page: what is in them, where they are shown, how large they are."""

from __future__ import annotations

import re
from pathlib import Path

from demux.operations.status.model import GameHealth
from tools.screenshot import IMAGES, PICTURES, status

ROOT = Path(__file__).parents[3]


def test_the_picture_has_games_in_each_state() -> None:
    found = status()
    assert found.states == {GameHealth.FAILED: 1, GameHealth.WAITING: 2, GameHealth.BEHIND: 2, GameHealth.CURRENT: 19}
    assert [problem.condition for problem in found.problems] == ["CHECKPOINT_LOST", "waiting"]
    assert len(found.rounds) == 60
    assert status() == found


def test_each_picture_is_shown_and_small() -> None:
    pages = {ROOT / "README.md", ROOT / "docs" / "status.md"}
    shown = {
        (page.parent / name).resolve()
        for page in pages
        for name in re.findall(r"[\w/-]+\.png", page.read_text(encoding="utf-8"))
    }
    assert shown == {IMAGES / f"{name}.png" for name, *_ in PICTURES}
    assert [file for file in shown if file.stat().st_size > 250_000] == []
