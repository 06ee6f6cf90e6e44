"""Names made from game names: safe, stable, and never shared."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.names import (
    MAX_KEY_LENGTH,
    MAX_NAME_BYTES,
    escape_partition_value,
    game_key,
    invalid_reason,
    names_of,
    quote_identifier,
    sql_string,
)

HOSTILE = (
    *(
        "Chess",
        "chess",
        "CHESS",
        "ch-ess",
        "ch ess",
        "ch_ess",
        "ch__ess",
        "chess_",
        "_chess",
        "chess ",
        "chess\n",
        "Çhess",
    ),
    *("../../etc", "..", ".", "/", "\\", "a/b", "a\\b", "a:b", "con", "nul.txt", "%2e%2e", "${env:HOME}", "a`b", "*"),
    *("a'b; drop table x", '"', "x" * 40, "x" * 41, "x" * 80, "1942", "g_1942", "_", "__", "", " ", "\x00"),
    *(
        "将棋",
        "囲碁",
        "شطرنج",
        "♟",
        "🎮",
        "🎮🎮",
        "\uff43\uff48\uff45\uff53\uff53",
        "cheß",
        "ﬁght",
        "K",
        "k",
        "\u212a",
        "İ",
        "\u0131",
        "\ud800",
    ),
)
GOLDEN = {
    "Chess": "chess__c1aade8253979ee2",
    "将棋": "g__a8fc6717b23570b4",
    "a'b; drop table x": "a_b_drop_table_x__9bca94d10f29567d",
    "Pokémon GO": "pokemon_go__54ee411acc648756",
}
names = st.text(st.characters(), max_size=100) | st.sampled_from(HOSTILE) | st.text("aA_-g1 .", max_size=8)
plain_keys = st.from_regex(r"[a-z][a-z0-9_]{0,39}", fullmatch=True).filter(lambda key: "__" not in key)
texts = st.text(st.characters(exclude_categories=["Cs"]))


def test_hostile_names_all_have_different_keys_in_lower_case() -> None:
    assert len(set(HOSTILE)) == len({game_key(name).lower() for name in HOSTILE})


@given(st.sets(names, max_size=30))
def test_different_names_have_different_keys_even_beside_names_that_are_keys_of_others(some: set[str]) -> None:
    everyone = some | {game_key(name) for name in some} | {name.upper() for name in some}
    hashed_twice = {game_key(name) for name in everyone}
    assert len(hashed_twice) == len(everyone)


@given(plain_keys)
def test_a_plain_key_is_its_own_key(key: str) -> None:
    assert game_key(key) == key


@given(names)
def test_a_key_is_bounded_and_has_only_safe_characters(name: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", game_key(name))
    assert len(game_key(name)) <= MAX_KEY_LENGTH <= 63


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("chess", "chess"),
        ("Chess", "chess__"),
        ("Ch ess!", "ch_ess__"),
        ("Pokémon GO", "pokemon_go__"),
        ("1942", "g_1942__"),
        ("将棋", "g__"),
        ("../../etc", "etc__"),
        ("x" * 80, "x" * 40 + "__"),
    ],
)
def test_a_key_begins_with_what_is_readable_of_the_name(name: str, key: str) -> None:
    assert game_key(name).startswith(key)


def test_keys_never_change_between_releases() -> None:
    assert {name: game_key(name) for name in GOLDEN} == GOLDEN


def test_every_place_has_a_name_made_from_the_key() -> None:
    chess = names_of("chess")
    assert (chess.game, chess.key, chess.table) == ("chess", "chess", "chess")
    assert (chess.query_name, chess.task_key) == ("silver/chess", "deserialize_chess")


@given(names)
def test_task_keys_are_what_databricks_takes(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,100}", names_of(name).task_key)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "The game name is empty."),
        ("将" * 27, "The game name has 81 bytes in UTF-8; at most 80 are allowed."),
        ("a\x00", "The game name has a control character (U+0000) at position 2."),
        ("a\tb", "The game name has a control character (U+0009) at position 2."),
        ("\x85", "The game name has a control character (U+0085) at position 1."),
        ("a\ud800", "The game name has half of a surrogate pair (U+D800) at position 2."),
        ("a\u2028b", "The game name has a line or paragraph separator (U+2028) at position 2."),
        ("a\u2029b", "The game name has a line or paragraph separator (U+2029) at position 2."),
        ("a\u202eb", "The game name has a control character for the writing direction (U+202E) at position 2."),
        (" \u3000", "The game name has only white space."),
        ("\u200b", "The game name has only white space."),
        (
            "__HIVE_DEFAULT_PARTITION__",
            "The game name is __HIVE_DEFAULT_PARTITION__, which means NULL in a folder name.",
        ),
    ],
)
def test_a_name_that_cannot_be_used_has_a_reason(name: str, reason: str) -> None:
    assert invalid_reason(name, MAX_NAME_BYTES) == reason


@pytest.mark.parametrize("character", "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
def test_every_control_of_the_writing_direction_is_refused(character: str) -> None:
    assert invalid_reason(f"a{character}b", MAX_NAME_BYTES) is not None


@pytest.mark.parametrize(
    "name", ["chess", "../../etc", "a'b; drop table x", "将棋", "شطرنج", "👨‍👩‍👧", " a ", "x" * 80, "%00", "null"]
)
def test_strange_names_that_are_no_danger_are_kept(name: str) -> None:
    assert invalid_reason(name, MAX_NAME_BYTES) is None


def test_a_lower_limit_of_bytes_is_kept_to_the_byte() -> None:
    assert invalid_reason("abc", 3) is None
    assert invalid_reason("abcd", 3) == "The game name has 4 bytes in UTF-8; at most 3 are allowed."


@given(names)
def test_a_usable_name_has_no_control_character_and_fits_a_folder_name(name: str) -> None:
    if invalid_reason(name, MAX_NAME_BYTES) is None:
        assert not {"Cc", "Cs", "Zl", "Zp"} & {unicodedata.category(character) for character in name}
        assert len(f"game_name={escape_partition_value(name)}".encode()) <= 255


def test_hive_escapes_exactly_the_characters_that_spark_escapes() -> None:
    escaped = {chr(code) for code in range(0x250) if escape_partition_value(chr(code)) != chr(code)}
    assert escaped == {chr(code) for code in range(1, 0x20)} | set("\"#%'*/:=?\\{[]^\x7f")
    assert escape_partition_value("a/b%\x01\x7f é}") == "a%2Fb%25%01%7F é}"


@given(texts)
def test_a_hive_escaped_value_comes_back_and_is_one_path_segment(value: str) -> None:
    assert unquote(escape_partition_value(value)) == value
    assert "/" not in escape_partition_value(value)


@given(texts)
def test_a_quoted_identifier_comes_back_and_ends_only_at_its_end(identifier: str) -> None:
    inside = quote_identifier(identifier)[1:-1]
    assert inside.replace("``", "`") == identifier
    assert "`" not in inside.replace("``", "")


@given(texts | st.sampled_from(HOSTILE[:-1]) | st.text("\\'$u0024{}n", max_size=12))
def test_a_sql_string_comes_back_through_the_rules_of_spark(text: str) -> None:
    assert _spark_string(sql_string(text)) == text


def test_a_sql_string_has_no_dollar_sign_for_spark_to_replace() -> None:
    assert sql_string("${env:HOME}") == r"'\u0024{env:HOME}'"
    assert sql_string(r"a'b\c") == r"'a\'b\\c'"


def _spark_string(literal: str) -> str:
    # spark's grammar of STRING_LITERAL, then its unescaping: \uXXXX, \ooo, \0bnrtZ, \% and \_ as they are, else itself
    assert re.fullmatch(r"'(?:[^'\\]|\\.|'')*'", literal, re.DOTALL)
    special = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

    def unescaped(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] == "u" and len(code) == 5:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if len(code) == 3 else special.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|[01][0-7]{2}|.)", unescaped, literal[1:-1], flags=re.DOTALL)
