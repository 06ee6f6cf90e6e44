"""Which browser `tools/setup.sh` gives, in a machine that has only what the test puts there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "tools" / "setup.sh"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with what the script itself calls, and no apt-get."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "dirname", "mkdir", "uname", "id"):
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    return folder


def program(file: Path) -> Path:
    file.write_text("#!/bin/sh\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def browser(programs: Path, chrome_bin: str = "") -> subprocess.CompletedProcess[str]:
    environ = {"PATH": str(programs), "CHROME_BIN": chrome_bin}
    return subprocess.run(
        ["sh", str(SETUP), "browser", "current"], env=environ, capture_output=True, text=True, check=False
    )


def test_the_named_browser_comes_first_even_with_a_space_in_its_path(programs: Path, tmp_path: Path) -> None:
    program(programs / "chromium")
    named = program(tmp_path / "my chrome")
    assert browser(programs, str(named)).stdout == f"{named}\n"


def test_a_named_browser_that_is_not_there_is_said_and_no_other_is_taken(programs: Path) -> None:
    program(programs / "chromium")
    found = browser(programs, "/no/such/chrome")
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr == "setup: CHROME_BIN=/no/such/chrome is no program.\n"


def test_one_in_path_is_found_whatever_it_is_called(programs: Path) -> None:
    headless = program(programs / "chromium-headless-shell")
    assert browser(programs).stdout == f"{headless}\n"
    chromium = program(programs / "chromium")
    assert browser(programs).stdout == f"{chromium}\n"


@pytest.mark.parametrize("words", [["browser"], ["browser", "newest"], ["window", "current"], []])
def test_another_task_or_lane_is_answered_with_the_usage(programs: Path, words: list[str]) -> None:
    found = subprocess.run(
        ["sh", str(SETUP), *words], env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert found.stderr == "setup: usage: tools/setup.sh install|java|browser current|oldest\n"
