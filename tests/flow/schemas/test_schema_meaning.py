"""A record means what its game's subject says, and a stray record makes nobody's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from demux.cli.repair.backfill_days import Backfilling
from demux.core.registry.folder import MANIFEST
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.redecode.backfill_plan import BackfillRequest
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.replay import replay
from tests.support.flow.fleet import FLEET, STREAM, without_errors
from tests.support.flow.process import Command
from tests.support.flow.root import NOW, Root, wrapper

ENGINES = pytest.mark.parametrize(
    "run", [pytest.param(STREAM, id="stream", marks=pytest.mark.oldest), pytest.param(FLEET, id="fleet")]
)
TWO = """
    syntax = "proto3";
    package two;
    message First { string word = 1; }
    message Second { int32 at = 2; string word = 1; }
"""
CHESS = 'syntax = "proto3"; message Move { string user = 1; int32 moves = 2; }'
CHESS_2 = 'syntax = "proto3"; message Move { string user = 1; int32 moves = 2; bool rated = 3; }'
# field 1 is a number here
OTHER = 'syntax = "proto3"; message Other { int64 points = 1; }'
CHESS_ID, CHESS_2_ID, OTHER_ID = 12, 13, 11


def registry(root: Root, *entries: str, **files: str) -> None:
    folder = Path(root.settings.registry_path)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.proto").write_text(text)
    (folder / MANIFEST).write_text("schemas:\n" + "".join(f"- {{{entry}}}\n" for entry in entries))


def move(root: Root, schema_id: int, **values: object) -> bytes:
    kind: type[Message] = root.message(schema_id)
    return wrapper("chess", schema_id, kind(**values).SerializeToString())


@pytest.fixture
def shared(spark: SparkSession, tmp_path: Path) -> Callable[..., Root]:
    """Makes a root whose registry has one text under one id and two subjects; one record of each game."""

    def make(run: Mapping[str, object], **registry_settings: object) -> Root:
        root = Root.at(spark, tmp_path / "root", run=run, registry=registry_settings)
        entries = (f"id: 7, subject: {name}-value, version: 1, file: two.proto" for name in ("abc", "zed"))
        registry(root, *entries, two=TWO)
        root.send([wrapper(game, 7, b"\x0a\x03Ann\x10\x05") for game in ("zed", "abc")])
        return root

    return make


@pytest.mark.both_lanes
@ENGINES
def test_an_id_of_two_subjects_is_decoded_with_the_message_of_the_games_own(
    shared: Callable[..., Root], run: Mapping[str, object], command: Command
) -> None:
    root = shared(run, messages={"zed-value": "two.Second"})
    without_errors(root.run())
    assert [(row["word"], row["at"], row["_rescued"]) for row in root.silver("zed")] == [("Ann", 5, None)]
    assert [(row["word"], row["_rescued"]) for row in root.silver("abc")] == [("Ann", b"\x10\x05")]
    assert root.quarantine() == []
    # what is shown is what was done, from the same function
    settings = ("--root", str(root.folder), "--set", "registry.messages.zed-value=two.Second")
    assert "two.Second" in command("schemas", "show", "7", "--game", "zed", *settings).out
    assert "abc-value" in command("schemas", "show", "7", "--game", "abc", *settings).out


def test_what_the_table_of_schemas_has_means_the_same_when_the_registry_is_gone(
    shared: Callable[..., Root],
) -> None:
    root = shared(FLEET, messages={"zed-value": "two.Second"})
    without_errors(root.run())
    Path(root.settings.registry_path, MANIFEST).unlink()
    root.send([wrapper("zed", 7, b"\x10\x09")], 2)
    without_errors(root.run())
    assert [row["at"] for row in root.silver("zed")] == [5, 9]


def test_an_id_of_two_subjects_that_are_no_games_own_fails_that_game_alone_and_waits_for_the_settings(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = Root.at(spark, tmp_path / "root", run=FLEET)
    registry(
        root,
        "id: 7, subject: abc, version: 1, file: two.proto",
        "id: 7, subject: xyz, version: 1, file: two.proto, message: two.Second",
        "id: 12, subject: chess, version: 1, file: chess.proto",
        two=TWO,
        chess=CHESS,
    )
    root.send([wrapper("zed", 7, b"\x10\x05"), move(root, 12, user="Ann")])
    failed = [(end.task.game, end.error.condition) for end in root.run().ended if end.error is not None]
    assert failed == [("zed", "SUBJECT_AMBIGUOUS")]
    assert (root.silver("zed"), root.quarantine()) == ([], [])
    assert [row["user"] for row in root.silver("chess")] == ["Ann"]
    chosen = Root.at(spark, root.folder, run=FLEET, games={"subjects_of": {"zed": ["xyz"]}})
    without_errors(chosen.run())
    assert [row["at"] for row in chosen.silver("zed")] == [5]


def strays(root: Root) -> tuple[list[bytes], list[bytes]]:
    """Return twenty right records of `chess` in two versions, and one with the id of another game's schema."""
    registry(
        root,
        f"id: {OTHER_ID}, subject: aaa, version: 1, file: other.proto",
        f"id: {CHESS_ID}, subject: chess, version: 1, file: chess.proto",
        f"id: {CHESS_2_ID}, subject: chess, version: 2, file: chess_2.proto",
        chess=CHESS,
        chess_2=CHESS_2,
        other=OTHER,
    )
    right = [move(root, CHESS_ID, user=f"u{at}", moves=at) for at in range(10)]
    right += [move(root, CHESS_2_ID, user=f"u{at}", moves=at, rated=True) for at in range(10, 20)]
    return right, [move(root, OTHER_ID, points=9)]


def require_chess(root: Root) -> None:
    """Check that the table has the right records, and quarantine the stray one."""
    assert sorted(row["moves"] for row in root.silver("chess")) == [*range(20)]
    assert [name for name in root.silver_columns("chess") if not name.startswith("_")] == ["user", "moves", "rated"]
    assert [(row["cause"], row["sentence"]) for row in root.quarantine()] == [
        ("SCHEMA_CONFLICT", "Schema 11 is of the subject 'aaa', and the game has the subject 'chess'.")
    ]


@ENGINES
@pytest.mark.parametrize("in_one_round", [True, False], ids=["one round", "stray round first"])
def test_a_stray_record_makes_no_table_and_takes_no_row(
    spark: SparkSession, tmp_path: Path, run: Mapping[str, object], in_one_round: bool
) -> None:
    root = Root.at(spark, tmp_path / "root", run=run)
    right, stray = strays(root)
    for at, batch in enumerate([[*stray, *right]] if in_one_round else [stray, right]):
        root.send(batch, 100 * at)
        without_errors(root.run())
    require_chess(root)


def test_a_rebuild_a_backfill_and_a_replay_decide_as_a_round_does(spark: SparkSession, tmp_path: Path) -> None:
    root = Root.at(spark, tmp_path / "root", run=FLEET)
    right, stray = strays(root)
    root.send([*stray, *right], at=NOW)
    without_errors(root.run())
    schemas = root.workplace().schemas
    rebuild(Redecoder(spark, root.layout, schemas), "chess")
    require_chess(root)
    assert replay(spark, root.layout, schemas, "chess", QuarantineFilter("chess")).decoded == 0
    require_chess(root)
    Backfilling(root.workplace(), BackfillRequest(("chess",), NOW.date(), NOW.date())).run()
    require_chess(root)


def test_a_table_that_began_with_a_stray_record_is_right_after_a_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    root = Root.at(spark, tmp_path / "root", run=FLEET)
    right, stray = strays(root)
    # while the settings said so, the other schema was the game's
    wrong = Root.at(spark, root.folder, run=FLEET, games={"subjects_of": {"chess": ["aaa"]}})
    wrong.send(stray)
    without_errors(wrong.run())
    assert wrong.silver_columns("chess")[0] == "points"
    root.send(right, 100)
    without_errors(root.run())
    assert {row["cause"] for row in root.quarantine()} == {"SCHEMA_CONFLICT"}
    rebuild(Redecoder(spark, root.layout, root.workplace().schemas), "chess")
    require_chess(root)


def test_an_id_that_was_registered_under_the_games_subject_later_is_the_games(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = Root.at(spark, tmp_path / "root", run=FLEET)
    right, stray = strays(root)
    place = root.workplace()
    root.send([*stray, *right])
    without_errors(root.run(place))
    require_chess(root)
    manifest = Path(root.settings.registry_path, MANIFEST)
    manifest.write_text(manifest.read_text() + f"- {{id: {OTHER_ID}, subject: zed, version: 1, file: other.proto}}\n")
    kind = root.message(OTHER_ID)
    root.send([wrapper("zed", OTHER_ID, kind(points=4).SerializeToString())], 200)
    without_errors(root.run(place))
    assert [row["points"] for row in root.silver("zed")] == [4]
