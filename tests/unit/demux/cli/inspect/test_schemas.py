"""`demux schemas …` on a registry folder, with names that would like to be more than names."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console, RenderableType
from typer.testing import CliRunner, Result

from demux.cli.commands.schemas import schemas
from demux.cli.inspect.schema_check import NamedRegistry, SubjectCheck, candidate, check
from demux.cli.inspect.schema_text import Listed, check_lines, columns_table, comparison_lines, list_table, schema_text
from demux.cli.options import settings_of
from demux.core.columns.types import Struct
from demux.core.control.games_and_rounds import approvals_of, approved
from demux.core.errors import DemuxError, ExitCode, SchemaInvalid, SchemaUnknown, SettingsInvalid
from demux.core.protobuf.compatibility.compare import compare, silver_columns, table_of
from demux.core.registry.folder import FolderRegistry
from demux.core.registry.protocol import ImportedFile, NewSchema, RegisteredSchema
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.games import EVOLVE
from demux.core.storage.files import Storage
from demux.pipeline.context import registry_of
from deserializer.decoders.schema_decision import decide
from deserializer.silver.file_table import SilverTable
from tests.support.data.versions import version_of
from tests.support.spark.tables import bronze_row, write_bronze
from tools.memory_registry import MemoryRegistry

Golden = Callable[[str, str], None]

WIDTH = 80
HOSTILE = ("[bold red]markup[/]", "\x1b[31mred\x1b[0m", "two\nlines", "right\u202eto left", "x" * 100)
HEAD = 'syntax = "proto3"; package games.chess;\n'
ONE = (
    HEAD
    + "message Event { string user = 1; int32 score = 2; Device device = 3; message Device { string model = 1; } }\n"
)
TWO = ONE.replace("Device device = 3;", "Device device = 3; repeated string tags = 4;")
SHARED = 'syntax = "proto3"; package shared; message Place { double x = 1; double y = 2; }\n'
PLACED = 'syntax = "proto3"; package games.go; import "shared/place.proto"; message Event { shared.Place at = 1; }\n'


def on_terminal(table: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=WIDTH, highlight=False, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    registry = FolderRegistry(tmp_path / "root" / "registry")
    shared = (ImportedFile("shared/place.proto", SHARED),)
    registry.register_all(
        [
            NewSchema("chess", ONE, "games/chess.proto"),
            NewSchema("chess", TWO, "games/chess.proto", (), "games.chess.Event"),
            NewSchema("go-value", PLACED, "games/go.proto", shared, "games.go.Event"),
            NewSchema("\x1b[31mred", 'syntax = "proto3"; message Other { int32 x = 1; }', "other.proto"),
        ]
    )
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(schemas, [*words, "--root", "root"])


def json_of(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def changed(folder: Path, text: str, name: str = "new/games/chess.proto") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return name


def test_the_list_shows_every_schema_and_no_escape_sequence(folder: Path) -> None:
    result = run("list")
    assert result.exit_code == ExitCode.OK
    assert "\x1b" not in result.stdout
    assert "\\u001b[31mred" in result.stdout
    listed = json_of("list")
    assert [(one["schema_id"], one["subject"], one["version"], one["message"]) for one in listed["schemas"]] == [
        (4, "\x1b[31mred", 1, None),
        (1, "chess", 1, None),
        (2, "chess", 2, "games.chess.Event"),
        (3, "go-value", 1, "games.go.Event"),
    ]
    assert {one["registry"] for one in listed["schemas"]} == {"default"}
    assert listed["problems"] == []


def test_one_subject_that_cannot_be_used_hides_no_other(folder: Path) -> None:
    for file in (folder / "root" / "registry").rglob("go.proto"):
        file.unlink()
    listed = json_of("list")
    assert [one["subject"] for one in listed["schemas"]] == ["\x1b[31mred", "chess", "chess"]
    assert [problem.split(":")[0] for problem in listed["problems"]] == ["subject go-value cannot be used"]


def test_a_second_registry_is_listed_by_its_name_and_a_silent_one_is_a_problem(folder: Path) -> None:
    FolderRegistry(folder / "more").register("ludo", ONE, "ludo.proto", ())
    other = f"registries:\n  other: {{games: ['l*'], path: {folder / 'more'}}}\n"
    (folder / "demux.yml").write_text(other, encoding="utf-8")
    one = json_of("list", "--registry", "other")
    assert [(two["registry"], two["subject"]) for two in one["schemas"]] == [("other", "ludo")]
    gone = f"  gone: {{games: ['x'], path: {folder / 'nowhere'}}}\n"
    (folder / "demux.yml").write_text(other + gone, encoding="utf-8")
    result = run("list", "--json")
    both = json.loads(result.stdout)
    assert [two["registry"] for two in both["schemas"]] == ["default"] * 4 + ["other"]
    assert [problem.split(":")[0] for problem in both["problems"]] == ["registry gone"]
    assert result.exit_code == ExitCode.TRANSIENT


def test_a_game_is_looked_for_in_its_own_registry(folder: Path) -> None:
    FolderRegistry(folder / "more").register("ludo", ONE, "ludo.proto", ())
    FolderRegistry(folder / "root" / "registry").register("ludo", TWO, "ludo.proto", ())
    text = f"registries:\n  other: {{games: ['l*'], path: {folder / 'more'}}}\n"
    (folder / "demux.yml").write_text(text, encoding="utf-8")
    file = changed(folder, ONE)
    assert [one["registry"] for one in json_of("check", file, "--game", "ludo")["subjects"]] == ["other"]
    everywhere = [(one["registry"], one["subject"]) for one in json_of("check", file)["subjects"]]
    assert everywhere == [("default", "chess"), ("default", "ludo"), ("other", "ludo")]


def test_a_registry_that_is_not_configured_is_refused(folder: Path) -> None:
    refused = run("list", "--registry", "nix")
    assert isinstance(refused.exception, SettingsInvalid)
    assert refused.exception.remedy == "Use one of: default."


def test_show_prints_the_text_and_what_it_imports(folder: Path) -> None:
    assert run("show", "3").stdout == (
        "// schema 3, subject go-value, version 1, message games.go.Event: games/go.proto\n"
        f"{PLACED}\n// referenced: shared/place.proto\n{SHARED}"
    )


def test_show_prints_the_silver_columns_with_their_field_numbers(folder: Path) -> None:
    lines = [line.split() for line in run("show", "3", "--columns").stdout.splitlines()]
    assert [words for words in lines if len(words) == 3] == [
        ["column", "type", "field"],
        ["at", "STRUCT", "1"],
        ["at.x", "DOUBLE", "1"],
        ["at.y", "DOUBLE", "2"],
    ]


def test_an_unknown_id_is_an_error_and_an_id_below_one_a_mistake(folder: Path) -> None:
    assert isinstance(run("show", "99").exception, SchemaUnknown)
    assert run("show", "0").exit_code == ExitCode.USAGE


def test_diff_tells_what_differs_between_two_ids(folder: Path) -> None:
    result = run("diff", "1", "2")
    assert result.exit_code == ExitCode.OK
    assert result.stdout.splitlines()[0] == "chess version 1 (schema 1) -> chess version 2 (schema 2)"
    difference = json_of("diff", "1", "2")
    assert [(one["path"], one["kind"], one["wire"]) for one in difference["changes"]] == [
        ("tags", "FIELD_ADDED", "compatible")
    ]
    assert (difference["added"], difference["breaks"]) == (["tags"], False)
    assert difference["modes"] == ["BACKWARD", "FORWARD", "FULL", "NONE"]
    assert json_of("diff", "1", "1")["changes"] == []


def test_diff_knows_the_columns_of_versions_before_the_older_one(folder: Path) -> None:
    registry = FolderRegistry(folder / "root" / "registry")
    fewer = HEAD + "message Event { string user = 1; }"
    again = HEAD + "message Event { string user = 1; string score = 2; }"
    older, newer = (registry.register("chess", text, "games/chess.proto", ()) for text in (fewer, again))
    difference = json_of("diff", str(older), str(newer))
    assert difference["conflicts"] == ["Column score is INT, the schema writes STRING"]


def test_a_file_that_only_adds_breaks_nothing(folder: Path) -> None:
    file = changed(folder, TWO.replace("message Event {", "message Event { bool rated = 9;"))
    result = run("check", file)
    assert result.exit_code == ExitCode.OK
    assert result.stdout.splitlines()[-1] == f"{file} breaks nothing; subjects compared: 1"
    (subject,) = json_of("check", file)["subjects"]
    assert (subject["subject"], subject["version"], subject["added"]) == ("chess", 2, ["rated"])


def test_a_file_that_changes_a_type_breaks_the_game_and_says_where(folder: Path) -> None:
    file = changed(folder, TWO.replace("int32 score", "string score"))
    result = run("check", file)
    assert result.exit_code == ExitCode.GAMES_FAILED
    outcome = json_of("check", file)
    assert outcome["breaks"] is True
    ((change,),) = [subject["changes"] for subject in outcome["subjects"]]
    assert (change["path"], change["kind"], change["wire"]) == ("score", "TYPE_CHANGED", "incompatible")
    assert change["silver"] == {
        "effect": "SCHEMA_CONFLICT",
        "sentence": "Column score is INT, the schema writes STRING",
    }


def test_a_file_is_compared_with_the_subjects_of_its_messages_only(folder: Path) -> None:
    assert [one["subject"] for one in json_of("check", changed(folder, TWO))["subjects"]] == ["chess"]
    other = changed(folder, 'syntax = "proto3"; package games.new; message Event {}', "new.proto")
    result = run("check", other)
    assert (result.exit_code, result.stdout) == (ExitCode.OK, "no subject holds a message of new.proto\n")


def test_a_subject_that_is_named_is_compared_whatever_it_holds(folder: Path) -> None:
    (subject,) = json_of("check", changed(folder, TWO), "--subject", "go-value")["subjects"]
    assert (subject["subject"], subject["breaks"]) == ("go-value", True)
    assert [change["kind"] for change in subject["changes"]][:1] == ["MESSAGE_TYPE_CHANGED"]


def test_a_game_is_its_subject_with_or_without_value(folder: Path) -> None:
    file = changed(folder, PLACED, "new/games/go.proto")
    changed(folder, SHARED.replace("double", "float"), "new/shared/place.proto")
    (subject,) = json_of("check", file, "--game", "go")["subjects"]
    assert [(change["path"], change["kind"]) for change in subject["changes"]] == [
        ("at.x", "TYPE_CHANGED"),
        ("at.y", "TYPE_CHANGED"),
    ]
    assert json_of("check", file, "--game", "chess")["subjects"] == []
    refused = run("check", file, "--game", "nix").exception
    assert isinstance(refused, SettingsInvalid)
    assert refused.message == "The registry has no subject of 'nix'."


def test_a_changed_import_breaks_the_games_that_use_it(folder: Path) -> None:
    file = changed(folder, SHARED.replace("double y", "string y"), "new/shared/place.proto")
    (subject,) = json_of("check", file)["subjects"]
    assert (subject["subject"], subject["message"], subject["breaks"]) == ("go-value", "games.go.Event", True)
    assert [(change["path"], change["kind"]) for change in subject["changes"]] == [("at.y", "TYPE_CHANGED")]
    # the same name in another folder is another file
    assert json_of("check", changed(folder, SHARED, "new/place.proto"))["subjects"] == []


def test_an_import_without_the_message_that_a_game_uses_breaks_it(folder: Path) -> None:
    file = changed(folder, SHARED.replace("Place", "Spot"), "new/shared/place.proto")
    result = run("check", file)
    assert result.exit_code == ExitCode.GAMES_FAILED
    (subject,) = json_of("check", file)["subjects"]
    assert subject["problem"].startswith("it does not compile any more: games/go.proto:1:")


def test_imports_are_found_below_the_roots_that_are_named(folder: Path) -> None:
    file = changed(folder, PLACED, "a/games/go.proto")
    changed(folder, SHARED, "b/shared/place.proto")
    with pytest.raises(SchemaInvalid) as refused:
        candidate(Path(file), [])
    assert refused.value.message.startswith(f"{file} does not compile: go.proto:1:")
    found = candidate(Path(file), [Path("a"), Path("b")])
    assert (found.schema.path, found.messages) == ("games/go.proto", ("games.go.Event",))
    assert found.schema.references == (ImportedFile("shared/place.proto", SHARED),)
    with pytest.raises(SettingsInvalid) as outside:
        candidate(Path(file), [Path("b")])
    assert outside.value.message == f"{file} is below no --import-root."


def test_the_message_that_the_settings_name_is_the_one_that_counts(folder: Path) -> None:
    setting = "registry:\n  messages: {chess: games.chess.Event.Device}\n"
    (folder / "demux.yml").write_text(setting, encoding="utf-8")
    assert {one["message"] for one in json_of("list")["schemas"] if one["subject"] == "chess"} == {
        "games.chess.Event.Device"
    }
    assert json_of("diff", "1", "2")["changes"] == []
    (subject,) = json_of("check", changed(folder, TWO.replace("string model", "int32 model")))["subjects"]
    assert [change["path"] for change in subject["changes"]] == ["model"]


def test_no_import_leaves_the_roots(folder: Path) -> None:
    changed(folder, SHARED, "secret.proto")
    file = changed(folder, 'syntax = "proto3"; import "../secret.proto"; message M {}', "in/m.proto")
    with pytest.raises(SchemaInvalid):
        candidate(Path(file), [])


@pytest.mark.parametrize(
    ("content", "cause"), [(None, "cannot be read: No such file"), (b"\xff", "cannot be read: it is not UTF-8 text")]
)
def test_a_file_that_cannot_be_read_is_a_mistake_of_the_command_line(
    folder: Path, content: bytes | None, cause: str
) -> None:
    if content is not None:
        (folder / "x.proto").write_bytes(content)
    with pytest.raises(SettingsInvalid) as refused:
        candidate(Path("x.proto"), [])
    assert refused.value.message.startswith(f"x.proto {cause}")


def test_a_subject_whose_latest_version_does_not_compile_is_said_and_is_not_the_files_fault(folder: Path) -> None:
    registry = MemoryRegistry([RegisteredSchema(1, "chess", 1, "message Event {", "c.proto", (), "games.chess.Event")])
    one = check(
        NamedRegistry("default", registry, {}), "chess", candidate(Path(changed(folder, TWO)), []), by_name=True
    )
    assert one is not None
    assert (one.breaks, one.comparison) == (False, None)
    assert one.problem.startswith("Schema 1 ('chess' version 1) does not compile: c.proto:1:")


def test_a_file_that_no_table_can_hold_breaks_the_subject(folder: Path) -> None:
    types = [f"T{number}" for number in range(9)]
    fields = " ".join(f"{name} {name.lower()} = {number};" for number, name in enumerate(types, start=1))
    text = HEAD + "message Event { T0 root = 5; }" + "".join(f"message {name} {{ {fields} }}" for name in types)
    registry = MemoryRegistry([RegisteredSchema(1, "chess", 1, ONE, "c.proto")])
    one = check(
        NamedRegistry("default", registry, {}), "chess", candidate(Path(changed(folder, text)), []), by_name=True
    )
    assert one is not None
    assert (one.breaks, one.problem) == (True, "Message 'games.chess.Event' unfolds into more than 20000 columns")


class Held(MemoryRegistry):
    """A registry that holds its subjects to a mode."""

    def compatibility(self, subject: str) -> str | None:
        return "FULL_TRANSITIVE"


def test_a_registry_that_would_refuse_the_file_is_said_to(folder: Path) -> None:
    registry = Held([RegisteredSchema(1, "chess", 1, HEAD + "message Event { oneof o { int32 a = 1; } }", "c.proto")])
    file = changed(folder, HEAD + "message Event { oneof o { int32 a = 1; int32 b = 2; } }")
    one = check(NamedRegistry("default", registry, {}), "chess", candidate(Path(file), []), by_name=True)
    assert one is not None
    assert (one.breaks, one.refused, one.level) == (False, True, "FULL_TRANSITIVE")
    assert "its mode for this subject is FULL_TRANSITIVE, which refuses it" in on_terminal(check_lines(file, [one], []))


def listed(number: int, subject: str, version: int, message: str | None, level: str | None) -> Listed:
    return Listed("default", RegisteredSchema(number, subject, version, "", "x.proto", (), message), level)


def test_the_list_is_told_as_it_was_before(golden: Golden) -> None:
    rows = [listed(100 + number, name, 1, f"games.{name}", None) for number, name in enumerate(HOSTILE)]
    golden("schemas/list.txt", on_terminal(list_table(rows, ["subject \x1b[0m cannot be used: it is [b]broken[/b]"])))
    held = [listed(1, "chess", 1, None, "BACKWARD"), listed(2, "chess", 2, "games.chess.Event", "BACKWARD")]
    other = Listed("other", held[0].schema, "FULL_TRANSITIVE")
    golden("schemas/list_registries.txt", on_terminal(list_table([*held, other], [])))


def test_a_text_is_shown_without_what_a_terminal_would_obey(golden: Golden) -> None:
    text = HEAD + "// \x1b[31m [bold]\r\nmessage\tM { }  // \u202e\n"
    schema = RegisteredSchema(7, "chess", 3, text, "games/chess.proto", (ImportedFile("a.proto", "// \x07\n"),))
    golden("schemas/show.txt", schema_text(schema))


def test_columns_are_told_as_they_were_before(golden: Golden) -> None:
    body = "map<string, D> by_name = 1; repeated D list = 2; M again = 3; message D { E e = 1; Z z = 2; } message Z {}"
    columns = silver_columns(version_of(f"message M {{ {body} enum E {{ A = 0; }} }}"))
    golden("schemas/columns.txt", on_terminal(columns_table(columns)))


OLD = """message M { int32 score = 1; string user_name_of_the_player_who_sent_it = 2; D device = 3; E outcome = 4;
  repeated int32 laps = 5; int32 gone = 6; string x = 7; map<string, D> by_name = 8;
  message D { string model = 1; int32 mem = 2; } enum E { A = 0; B = 1; } }"""
NEW = """message M { string score = 1; string user = 2; D device = 3; E outcome = 4; int32 laps = 5;
  optional string x = 7; map<string, D> by_name = 8; bool rated = 9; reserved 6;
  message D { string model = 1; int64 mem = 2; Place at = 3; message Place { double x = 1; double y = 2; } }
  enum E { A = 0; WON = 1; } }"""


def test_a_comparison_is_told_as_it_was_before(golden: Golden) -> None:
    old, new = version_of(OLD, 1), version_of(NEW, 2)
    golden("schemas/diff.txt", on_terminal(comparison_lines(compare(old, new))))
    golden("schemas/diff_nothing.txt", on_terminal(comparison_lines(compare(old, old))))


def test_a_check_is_told_as_it_was_before(golden: Golden) -> None:
    first, second = version_of("message M { int32 a = 1; }", 1), version_of("message M { string a = 1; }", 2)
    third = version_of("message M { string a = 1; bool b = 2; }", 3)
    latest = [RegisteredSchema(number, name, 1, "", "x.proto") for number, name in enumerate(HOSTILE, start=1)]
    left = SubjectCheck("default", None, latest[0], "t.M", compare(second, third, table_of([first, second])))
    fine = SubjectCheck("default", "BACKWARD", latest[1], "t.M", compare(second, third))
    wide = SubjectCheck("default", None, latest[2], "t.M", None, "Message 't.M' is too wide", at_fault=True)
    broken = SubjectCheck("default", None, latest[3], "t.M", None, "Schema 4 ('\x1b') does not compile")
    problems = ["subject \x07 cannot be compared: no"]
    golden("schemas/check.txt", on_terminal(check_lines("new.proto", [left, fine, wide, broken], problems)))
    golden("schemas/check_fine.txt", on_terminal(check_lines("new.proto", [fine], [])))


def test_an_id_of_several_subjects_is_shown_as_each_game_means_it(folder: Path) -> None:
    shared = folder / "shared"
    shared.mkdir()
    (shared / "two.proto").write_text(
        'syntax = "proto3"; message First { string a = 1; } message Second { int32 b = 1; }'
    )
    entries = (f"- {{id: 7, subject: {name}-value, version: 1, file: two.proto}}\n" for name in ("abc", "zed"))
    (shared / "registry.yml").write_text("schemas:\n" + "".join(entries))
    settings = ("--set", f"registry.path={shared}", "--set", "registry.messages.zed-value=Second")
    assert "zed-value" in run("list", *settings).output
    plain = run("show", "7", *settings).output
    assert "// schema 7, subject abc-value, version 1: two.proto" in plain
    assert "// schema 7, subject zed-value, version 1, message Second: two.proto" in plain
    shown = {game: run("show", "7", "--columns", "--game", game, *settings).output for game in ("abc", "zed")}
    assert "a " in shown["abc"]
    assert "b " in shown["zed"]
    for words in (("show", "7", "--columns"), ("diff", "7", "7")):
        open_question = run(*words, *settings)
        assert isinstance(open_question.exception, SettingsInvalid)
        assert "abc-value (First), zed-value (Second)" in open_question.exception.message
    foreign = run("show", "7", "--game", "chess", "--set", "games.subjects=(?P<game>.+)-value", *settings)
    assert isinstance(foreign.exception, SettingsInvalid)
    assert "the game abc's" in foreign.exception.message


def test_a_schema_is_approved_without_spark(folder: Path) -> None:
    layout, ask = Layout("root"), ("--set", "games.schema_changes=ask")
    write_bronze(layout.bronze, bronze_row("chess", 1, 1), bronze_row("chess", 2, 2), bronze_row("go", 3, 3))
    schemas_of = SchemaStore(None, layout, registry_of(settings_of(None, "root", []), {}))
    answers = schemas_of.lookup([SchemaRef(1)], "chess")
    decisions = decide(Struct(()), answers, None, EVOLVE)
    SilverTable.at(Storage(), layout.silver("chess")).create(decisions.columns, decisions.message, "")
    approvals = approvals_of(None, layout)
    for words, said in (("nobody", "GAME_UNKNOWN"), ("go", "NOTHING_TO_APPROVE")):
        failed = CliRunner().invoke(schemas, ["approve", "--game", words, "--root", "root", *ask]).exception
        assert isinstance(failed, DemuxError)
        assert failed.condition == said
    assert run("approve", "--game", "chess", *ask).stdout == "chess: approved schema 2; the next round takes its rows\n"
    assert approved(approvals, "chess", "default") == {2}
    assert SparkSession.getActiveSession() is None
