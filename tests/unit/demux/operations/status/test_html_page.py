"""The page as text: whatever a game is called, nothing of it becomes markup or script, and it stays small."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.text import printable
from demux.operations.status.facts import Facts
from demux.operations.status.html_page import in_script, page, policy
from demux.operations.status.json_view import COLUMNS, status_json
from demux.operations.status.summary import status_of
from tests.support.data.statuses import HOSTILE, NOW, WORSE, busy, known, record


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"]:
            self.scripts[-1] += data


def data_of(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(Elements(text).scripts[0])
    return found


def page_of(*games: str, error: tuple[str, str] | None = None) -> str:
    records = [record(name, error=error) for name in games]
    facts = Facts(games={name: known(name, name) for name in games}, records=records, notes=games)
    return page(status_json(status_of(games[0] if games else "/root", facts, NOW)))


EMPTY = Elements(page_of())


@pytest.mark.parametrize("name", [*HOSTILE, *WORSE])
def test_a_hostile_name_adds_no_element_and_no_attribute(name: str) -> None:
    found = Elements(page_of(name, error=(name, name)))
    assert (found.tags, found.attributes) == (EMPTY.tags, EMPTY.attributes)
    assert found.scripts[1] == EMPTY.scripts[1]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_any_name_comes_out_as_it_went_in_but_for_what_is_invisible(name: str) -> None:
    text = page_of(name)
    assert Elements(text).tags == EMPTY.tags
    games = data_of(text)["games"]
    assert isinstance(games, list)
    assert games[0][0] == printable(name)


@given(st.text())
def test_json_in_a_script_is_the_same_json(text: str) -> None:
    written = in_script(json.dumps(text))
    assert json.loads(written) == text
    assert re.search("[<>&\u2028\u2029]", written) is None


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    text = page_of("go")
    assert re.findall(r"""(?:src|href)=["']?([^"'\s>]+)""", text) == ["#games"]
    assert re.findall(r"https?://[^\s\"'`)]+", text) == ["http://www.w3.org/2000/svg"] * 2
    assert "default-src 'none'" in policy()
    assert policy() in text


def test_the_script_makes_no_markup_of_what_it_reads() -> None:
    script = EMPTY.scripts[1]
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script) == []


@pytest.mark.thorough
def test_a_page_of_ten_thousand_games_is_small() -> None:
    assert len(page(status_json(busy(10_000, rounds=12)))) < 6_000_000


@pytest.mark.thorough
def test_ten_thousand_games_that_fail_in_long_words_of_their_own_are_bounded_too_and_keep_their_remedy() -> None:
    names = [f"game_{number}" for number in range(10_000)]
    records = [record(name, error=("LOST", f"{name}: {'x' * 5_000} Do this.")) for name in names]
    text = status_json(status_of("/root", Facts(records=records), NOW))
    assert len(text) < 15_000_000
    content = json.loads(text)
    assert (len(content["problems"]), content["more_problems"]) == (20, 9_980)
    assert {sentence[-9:] for _, sentence in content["failures"]} == {" Do this."}
    assert {len(sentence) for _, sentence in content["failures"]} == {1_003}


def test_of_many_tables_that_cannot_be_read_the_first_are_named() -> None:
    notes = tuple(f"The table {number} cannot be read." for number in range(10_000))
    content = json.loads(status_json(status_of("/root", Facts(notes=notes), NOW)))
    assert content["notes"] == [*notes[:20], "and 9,980 more like these"]


def test_a_game_has_a_value_for_each_column_and_a_failure_is_said_once() -> None:
    facts = Facts(records=[record(name, error=("LOST", "Gone.")) for name in ("a", "b")])
    content = json.loads(status_json(status_of("/root", facts, NOW)))
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in content["games"]]
    assert content["failures"] == [["LOST", "Gone."]]
    assert [(row["name"], row["state"], row["failure"], row["seconds"]) for row in rows] == [
        ("a", "failed", 0, 0.5),
        ("b", "failed", 0, 0.5),
    ]
    assert content["problems"] == [{"condition": "LOST", "sentence": "Gone.", "games": ["a", "b"], "count": 2}]
