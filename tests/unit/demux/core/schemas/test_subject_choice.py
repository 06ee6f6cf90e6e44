"""What a schema id means for a game, where several subjects have it."""

from __future__ import annotations

from itertools import permutations

import pytest

from demux.core.errors import SchemaInvalid, SubjectAmbiguous
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_files
from demux.core.registry.protocol import ImportedFile, RegisteredSchema, SubjectVersion
from demux.core.schemas.subject_choice import (
    ForeignSchema,
    GameSchemas,
    SharedSchema,
    choose,
    shared_schemas,
    uses_by_id,
)
from demux.core.settings.games import SubjectRule

TWO = 'syntax = "proto3"; package two; message First { string word = 1; } message Second { string word = 1; }'
SET = compile_files(RegisteredSchema(7, "any", 1, TWO, "two.proto"))


def shared(*uses: SubjectVersion | str) -> SharedSchema:
    found = (SubjectVersion(use, 1) if isinstance(use, str) else use for use in uses)
    return SharedSchema(7, SET, tuple(sorted(found, key=lambda use: (use.subject, use.version))))


def game(
    name: str, expression: str | None = None, named: dict[str, list[str]] | None = None, **messages: str
) -> GameSchemas:
    by_subject = {subject.replace("_", "-"): message for subject, message in messages.items()}
    return GameSchemas("default", SubjectRule(name, expression, named or {}), by_subject)


def meaning(
    schema: SharedSchema, whose: GameSchemas, *subjects: str, indexes: str | None = None
) -> tuple[str, int, str]:
    found = choose(schema, indexes, whose, frozenset(subjects))
    assert isinstance(found, CompiledSchema), found
    return (found.subject, found.version, found.message)


@pytest.mark.parametrize("uses", list(permutations(["abc-value", "zed-value"])))
def test_of_two_subjects_of_one_id_the_games_own_counts_with_its_message(uses: tuple[str, ...]) -> None:
    both = shared(*uses)
    assert meaning(both, game("zed", zed_value="two.Second")) == ("zed-value", 1, "two.Second")
    assert meaning(both, game("abc", zed_value="two.Second")) == ("abc-value", 1, "two.First")


def test_a_game_is_known_by_its_bare_name_by_an_expression_or_by_name_in_the_settings() -> None:
    both = shared("events.zed", "abc", "zed")
    second = {"zed": "two.Second", "events.zed": "two.Second"}
    by_rule = [
        SubjectRule("zed"),
        SubjectRule("zed", r"events\.(?P<game>.+)"),
        SubjectRule("zed", r"no-(?P<game>.+)", {"zed": ["events.zed"]}),
    ]
    found = [choose(both, None, GameSchemas("default", rule, second), frozenset()) for rule in by_rule]
    assert [(one.subject, one.message) for one in found if isinstance(one, CompiledSchema)] == [
        ("zed", "two.Second"),
        ("events.zed", "two.Second"),
        ("events.zed", "two.Second"),
    ]


def test_of_two_own_subjects_with_one_meaning_the_first_by_name_and_its_oldest_version_is_told() -> None:
    uses = [SubjectVersion("zed-value", 2), SubjectVersion("zed", 3), SubjectVersion("zed", 1)]
    for order in permutations(uses):
        assert meaning(shared(*order), game("zed")) == ("zed", 1, "two.First")


def test_two_own_subjects_with_different_messages_leave_the_question_open() -> None:
    with pytest.raises(SubjectAmbiguous) as open_question:
        choose(shared("zed", "zed-value"), None, game("zed", zed_value="two.Second"), frozenset())
    assert "'zed' (two.First), 'zed-value' (two.Second)" in open_question.value.message


def test_a_game_with_subjects_of_its_own_takes_no_other_subjects_schema() -> None:
    found = choose(shared("abc-value"), None, game("zed"), frozenset({"abc-value", "zed-value"}))
    assert found == ForeignSchema(
        7, "Schema 7 is of the subject 'abc-value', and the game has the subject 'zed-value'."
    )


def test_a_subject_that_the_settings_give_to_another_game_is_that_games_alone() -> None:
    found = choose(shared("abc-value"), None, game("zed", r"(?P<game>.+)-value"), frozenset({"abc-value"}))
    assert found == ForeignSchema(7, "Schema 7 is of the subject 'abc-value', the game abc's.")
    named = game("zed", None, {"abc": ["games.Event"]})
    assert isinstance(choose(shared("games.Event"), None, named, frozenset()), ForeignSchema)
    both = game("zed", None, {"abc": ["games.Event"], "zed": ["games.Event"]})
    assert meaning(shared("games.Event"), both) == ("games.Event", 1, "two.First")


def test_a_subject_of_no_game_serves_games_that_have_none_of_their_own() -> None:
    assert meaning(shared("games.Event"), game("zed"), "games.Event") == ("games.Event", 1, "two.First")


def test_an_import_that_is_a_subject_too_leaves_no_question_where_both_mean_the_same() -> None:
    schema = shared("google/rpc/status.proto", "rpc-status-value")
    assert meaning(schema, game("rpc-status")) == ("rpc-status-value", 1, "two.First")
    assert meaning(schema, game("zed")) == ("google/rpc/status.proto", 1, "two.First")


def test_the_settings_decide_between_subjects_that_are_no_games() -> None:
    assert meaning(shared("abc", "xyz"), game("zed", xyz="two.Second")) == ("xyz", 1, "two.Second")


def test_subjects_of_no_game_that_mean_different_messages_are_an_open_question() -> None:
    uses = (SubjectVersion("abc", 1, "two.First"), SubjectVersion("xyz", 4, "two.Second"))
    for order in permutations(uses):
        with pytest.raises(SubjectAmbiguous) as open_question:
            choose(shared(*order), None, game("zed"), frozenset())
        assert open_question.value.message == (
            "Schema 7 is of several subjects that mean different messages, 'abc' (two.First), 'xyz' (two.Second), and "
            "nothing says which of them the game's records hold."
        )
        assert open_question.value.fields["game"] == "zed"


def test_message_indexes_decide_where_they_are_there() -> None:
    uses = (SubjectVersion("abc", 1, "two.First"), SubjectVersion("xyz", 4, "two.Second"))
    assert meaning(shared(*uses), game("zed"), indexes="1") == ("abc", 1, "two.Second")
    assert meaning(shared("zed"), game("zed", zed="two.Second"), indexes="0") == ("zed", 1, "two.First")


def test_an_id_that_the_registry_names_no_subject_of_is_decoded_all_the_same() -> None:
    assert meaning(shared(), game("zed"), "zed-value") == ("schema-7", 1, "two.First")


def test_a_file_without_a_message_needs_a_name() -> None:
    text = 'syntax = "proto3"; import public "two.proto";'
    files = compile_files(RegisteredSchema(8, "zed", 1, text, "empty.proto", (ImportedFile("two.proto", TWO),)))
    schema = SharedSchema(8, files, (SubjectVersion("zed", 1),))
    with pytest.raises(SchemaInvalid, match="has no message of its own"):
        choose(schema, None, game("zed"), frozenset())
    assert meaning(schema, game("zed", zed="two.Second")) == ("zed", 1, "two.Second")


def test_what_the_table_of_schemas_has_is_read_as_it_was_written() -> None:
    row = {"registry": "default", "schema_id": 7, "version": 1, "message": None, "descriptor_set": bytearray(SET)}
    rows = [{**row, "subject": subject} for subject in ("zed", "abc", "zed")]
    nowhere = {**row, "schema_id": 8, "subject": "schema-8"}
    assert shared_schemas([*rows, nowhere]) == {
        ("default", 7): shared("abc", "zed"),
        ("default", 8): SharedSchema(8, SET, ()),
    }
    assert uses_by_id(rows) == {("default", 7): (SubjectVersion("abc", 1), SubjectVersion("zed", 1))}


def test_a_status_shows_the_version_of_the_games_own_subject() -> None:
    uses = [SubjectVersion("abc", 3), SubjectVersion("zed-value", 9)]
    assert [game(name).version_of(uses) for name in ("abc", "zed", "go")] == [3, 9, 3]
