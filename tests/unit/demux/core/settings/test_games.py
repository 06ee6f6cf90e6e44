"""Which games subjects name: the whole of a subject counts, and nothing that comes from outside takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import SettingsInvalid
from demux.core.settings.games import expression_mistake, games_named
from demux.core.settings.loading.loader import load

VALUE = "(?P<game>.+)-value"


def test_a_game_is_what_the_group_has_where_the_whole_subject_suits() -> None:
    subjects = ["chess-value", "chess-key", "go-value.v2", "将棋-value", "-value", "chess-value"]
    assert games_named(VALUE, subjects) == {"chess", "将棋"}


def test_a_group_that_a_subject_leaves_out_names_no_game() -> None:
    assert games_named("(?:(?P<game>[a-z]+)-value|common)", ["common", "go-value"]) == {"go"}


def test_half_of_a_surrogate_pair_is_no_subject() -> None:
    assert games_named(VALUE, ["\ud800-value", "go-value"]) == {"go"}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_comes_back(game: str) -> None:
    assert games_named("(?s)(?P<game>.+)-value", [f"{game}-value"]) == {game}


def test_an_expression_that_would_never_end_elsewhere_ends_at_once() -> None:
    # by Python's own engine this one takes longer than any test may
    assert games_named("(?P<game>(?:(?:a+)+)+)-value", ["a" * 100_000, "aa-value"]) == {"aa"}


@pytest.mark.parametrize(
    ("expression", "mistake"),
    [
        ("chess-value", "expected one group (?P<game>…) in it"),
        ("(?P<game>a)|(?P<game>b)", "expected one group (?P<game>…) in it"),
        ("(?P<game>.+)(-value)", "contains unnamed groups"),
        (r"(?P<game>.)\1", "invalid escape sequence"),
        ("(?P<game>.+", "missing )"),
        ("a)|(?P<game>b", "unexpected )"),
        ("(?P<game>\ud800)", "surrogates not allowed"),
        ("(?P<game>a{1000}{1000})", "bad repetition operator"),
        (f"(?P<game>{'a' * 500})", "expected 500 characters or less"),
    ],
)
def test_an_expression_that_cannot_be_used_is_told(expression: str, mistake: str) -> None:
    assert mistake in (expression_mistake(expression) or "")


def test_the_settings_refuse_it_by_its_key() -> None:
    assert load(None, {}, {"games.subjects": VALUE}).games.subjects == VALUE
    with pytest.raises(SettingsInvalid, match=r"command line: games\.subjects: 'chess': expected one group") as refused:
        load(None, {}, {"games.subjects": "chess"})
    assert len(refused.value.fields["mistakes"]) == 1  # type: ignore[arg-type]
