from __future__ import annotations

from datetime import date
from pathlib import Path

from benchmarks.support.page import made, with_section, write_section

PAGE = """# Results

An introduction.

## First
one

## Second
two
"""


def test_a_section_is_replaced_in_its_place_and_the_others_stay() -> None:
    assert with_section(PAGE, "First", ["new", ""]) == PAGE.replace("one", "new")


def test_a_new_section_comes_last() -> None:
    assert with_section(PAGE, "Third", ["three"]) == f"{PAGE}\n## Third\nthree\n"


def test_a_title_that_begins_like_another_is_another_section() -> None:
    assert with_section(PAGE, "Fir", ["x"]) == f"{PAGE}\n## Fir\nx\n"


def test_the_same_section_twice_is_the_same_page() -> None:
    once = with_section(PAGE, "Second", ["| a |", "", "text"])
    assert with_section(once, "Second", ["| a |", "", "text"]) == once


def test_a_section_says_by_which_command_when_and_where_it_was_made() -> None:
    sentence = made("make bench", date(2026, 1, 2), 2, "20 games")
    assert sentence.startswith("Made by `make bench` on 2026-01-02: 2 cores, ")
    assert sentence.endswith("; 20 games.")


def test_a_page_that_is_not_there_is_begun(tmp_path: Path) -> None:
    file = tmp_path / "RESULTS.md"
    write_section("First", "make bench", "", ["one"], file)
    write_section("Second", "make bench", "", ["two"], file)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# Results"
    assert [line for line in lines if line.startswith("## ")] == ["## First", "## Second"]
    assert [line for line in lines if line in {"one", "two"}] == ["one", "two"]
