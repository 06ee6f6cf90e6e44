"""Which files of bronze a game's stream leaves out: never its own, and nearly all others."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demux.core.names import MAX_NAME_BYTES, escape_partition_value, invalid_reason, key_folder
from deserializer.stream.source import other_games

# letters, digits, `-` and `_` are the only characters that no encoder of URIs touches
NEVER_ENCODED = re.compile(r"[A-Za-z0-9_-]")
HOSTILE = (
    "../../etc",
    "a'b; drop table x",
    "ch ess",
    "ch-ess",
    "100%",
    "%2F",
    "a b",
    "将棋",
    "é",
    "(.*)",
    "a|b",
    ".",
    "^$",
)

usable = st.one_of(
    st.text(st.characters(), min_size=1, max_size=25),
    st.text("ab2F% /-é", min_size=1, max_size=25),
    st.sampled_from(HOSTILE),
).filter(lambda name: invalid_reason(name, MAX_NAME_BYTES) is None)
plain = st.from_regex(NEVER_ENCODED.pattern + "{1,20}", fullmatch=True)


def path(segment: str) -> str:
    return f"game_name={segment}/part-00000-5f3c.c000.snappy.parquet"


def escaped(name: str) -> str:
    """The path of the name's files as Spark names them, percent-encoded as `urllib` does it."""
    return path(quote(escape_partition_value(name)))


def excludes(game: str, file: str) -> bool:
    return re.search(other_games(game), file) is not None


@st.composite
def encodings(draw: st.DrawFn, name: str) -> str:
    """Some encoding of the name's path: each character that may be encoded is, or is not, in capitals or not."""

    def encoded(character: str) -> str:
        if NEVER_ENCODED.fullmatch(character) or draw(st.booleans()):
            return character
        code = "".join(f"%{byte:02X}" for byte in character.encode())
        return code if draw(st.booleans()) else code.lower()

    return path("".join(map(encoded, escape_partition_value(name))))


@given(usable, st.data())
def test_a_file_of_its_own_is_never_left_out_however_its_path_is_encoded(name: str, data: st.DataObject) -> None:
    assert not excludes(name, data.draw(encodings(name)))


@given(usable)
@example("a" * 80)
@example("/" * 80)
def test_a_file_of_its_own_is_never_left_out_in_the_usual_encodings(name: str) -> None:
    hive = escape_partition_value(name)
    for segment in (hive, quote(hive), quote(hive, safe=""), quote(hive, safe="~()*!.'"), quote(quote(hive))):
        assert not excludes(name, path(segment))


@given(plain, plain)
@example("chess", "chess2")
@example("2chess", "chess")
@example("Chess", "chess")
def test_games_with_plain_names_leave_out_each_other(one: str, other: str) -> None:
    assert excludes(one, escaped(other)) == (one != other)


@pytest.mark.parametrize(
    ("game", "other"),
    [
        ("chess", "将棋"),
        ("chess", "ch ess"),
        ("ch ess", "chess and more"),
        ("ch ess", "go"),
        ("Game 001", "Game 002"),
        ("Game 001", "Game 0010"),
        ("Game 001", "My Game 001"),
        ("one two three", "one 2 three"),
        ("../../etc", "../../usr"),
        ("a'b; drop table x", "a'b; drop table y"),
    ],
)
def test_plainly_different_games_are_left_out(game: str, other: str) -> None:
    assert excludes(game, escaped(other))


@given(usable, usable)
@example("Chess", "chess")
@example("ch ess", "ch-ess")
def test_files_in_folders_of_keys_are_left_out_exactly_when_they_are_of_another_game(one: str, other: str) -> None:
    assert not excludes(one, f"{key_folder(one)}/part-0.parquet")
    assert excludes(one, f"{key_folder(other)}/part-0.parquet") == (one != other)


@pytest.mark.parametrize(
    "file", ["part-0.parquet", "aB/part-0.parquet", "s3://bucket/t/game_name=go/part-0.parquet", "other=go/p"]
)
def test_a_file_whose_path_does_not_begin_with_a_game_is_let_through(file: str) -> None:
    assert not excludes("chess", file)


@given(usable)
@example(" ".join("a" * 40))
def test_no_name_makes_an_expression_that_searches_for_long(name: str) -> None:
    # each further gap would multiply the time by the length of a path
    assert other_games(name).count("[^/]*") <= 2
