"""Tables whose schemas change: wider columns, frozen tables, tables that ask, and what waits in `_rescued`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from deltalake import DeltaTable

from demux import api
from demux.core.delta.parquet_writer import TableFile
from demux.core.errors import ApprovalNeeded, GameUnknown, TaskFailed
from demux.core.settings.settings import Sink
from demux.core.storage.files import Storage
from deserializer.fleet import waves
from deserializer.fleet.round import Fleet
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.rescue_backfill import BackfillReport, backfill_rescued
from deserializer.silver.rewrite import in_columns
from tests.support.flow import crash
from tests.support.flow.fleet import FLEET, STREAM, without_errors
from tests.support.flow.process import Command
from tests.support.flow.root import NOW, Root, wrapper

V1 = """
    syntax = "proto3";
    message Event { string name = 1; int32 score = 2; Inner in = 4; message Inner { float a = 1; } }
"""
V2 = V1.replace("int32 score = 2;", "int64 score = 2;").replace("float a = 1;", "double a = 1;")
V3 = V1.replace("int32 score = 2;", "int32 points = 2; repeated string tags = 3;").replace(
    "float a = 1;", "float a = 1; string b = 2;"
)


def root_with(root: Root, run: Mapping[str, object], **games: Any) -> Root:
    return Root.at(root.spark, root.folder, run=run, games=games)


def send(root: Root, offset: int, game: str, schema_id: int, **values: Any) -> None:
    """Append one record to the source and take it into bronze, in a file of its own."""
    root.send([wrapper(game, schema_id, root.message(schema_id)(**values).SerializeToString())], offset)
    root.workplace().ingest()


def values(root: Root, game: str, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in root.silver(game)]


def require_balance(root: Root) -> None:
    assert api.Root(root.settings).reconcile().balances


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(STREAM, id="stream", marks=pytest.mark.oldest),
        pytest.param(FLEET, id="fleet"),
        pytest.param({**FLEET, "sink": "spark"}, id="fleet by spark", marks=pytest.mark.both_lanes),
    ],
)
def test_a_wider_number_widens_its_column_for_rows_of_the_same_round_too(
    root: Root, engine: Mapping[str, object]
) -> None:
    root = root_with(root, engine)
    one, two = root.register("chess", V1), root.register("chess", V2)
    send(root, 0, "chess", one, name="a", score=1, **{"in": {"a": 0.5}})
    without_errors(root.run())
    send(root, 1, "chess", one, name="b", score=-2)
    send(root, 2, "chess", two, name="c", score=2**40, **{"in": {"a": 0.1}})
    without_errors(root.run())
    send(root, 3, "chess", one, name="d", score=4)
    without_errors(root.run())
    assert values(root, "chess", "name", "score", "in") == [
        ("a", 1, {"a": 0.5}),
        ("b", -2, None),
        ("c", 2**40, {"a": 0.1}),
        ("d", 4, None),
    ]
    read = root.spark.read.format("delta").load(root.silver_path("chess")).orderBy("_record_id")
    assert [row.score for row in read.collect()] == [1, -2, 2**40, 4]


def test_a_fleet_that_has_written_narrow_files_before_it_knows_better_writes_them_anew(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew: list[int] = []

    def counted(storage: Storage, files: Sequence[TableFile], *args: Any) -> tuple[TableFile, ...]:
        anew.append(len(files))
        return in_columns(storage, files, *args)

    monkeypatch.setattr(waves, "in_columns", counted)
    root = root_with(root, FLEET)
    one, two = root.register("chess", V1), root.register("chess", V2)
    send(root, 0, "chess", one, name="a", score=1)
    place = root.workplace()
    fleet = Fleet(root.spark, root.layout, place.schemas, 10**6, 2)
    assert [end.error for end in fleet.decode(["chess"], NOW)] == [None]
    # a task for each file: one knows its schema from the round before
    send(root, 1, "chess", one, name="b", score=-2)
    send(root, 2, "chess", two, name="c", score=2**40)
    assert [end.error for end in fleet.decode(["chess"], NOW)] == [None]
    assert values(root, "chess", "name", "score") == [("a", 1), ("b", -2), ("c", 2**40)]
    assert anew == [1]


def test_a_stream_that_takes_over_from_the_fleet_widens_before_its_first_row(root: Root) -> None:
    fleet = root_with(root, FLEET)
    one, two = root.register("chess", V1), root.register("chess", V2)
    send(root, 0, "chess", one, name="a", score=1)
    without_errors(fleet.run())
    send(root, 1, "chess", two, name="b", score=2**40)
    streams = root_with(root, STREAM)
    with crash.after_writing(root.silver_path("chess")), pytest.raises(TaskFailed):
        streams.workplace().deserialize("chess")
    without_errors(streams.run())
    assert values(root, "chess", "name", "score") == [("a", 1), ("b", 2**40)]


def test_a_frozen_table_keeps_rows_aside_until_it_may_change(root: Root) -> None:
    frozen = root_with(root, STREAM, schema_changes="freeze")
    one, three = root.register("chess", V1), root.register("chess", V3)
    send(frozen, 0, "chess", one, name="a", score=1)
    without_errors(frozen.run())
    send(frozen, 1, "chess", three, name="b", points=2)
    without_errors(frozen.run())
    (bad,) = frozen.quarantine()
    assert (bad["cause"], bad["record_id"]) == ("SCHEMA_FROZEN", "t/0/1")
    assert bad["sentence"] == (
        f"The table is frozen, and schema {three} adds column in.b STRING, adds column tags ARRAY<STRING>."
    )
    columns = frozen.silver_columns("chess")
    rebuild(Redecoder(frozen.spark, frozen.layout, frozen.workplace().schemas), "chess")
    assert frozen.silver_columns("chess") == columns


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param({**STREAM, "sink": "spark"}, id="stream", marks=pytest.mark.oldest),
        pytest.param(FLEET, id="fleet"),
    ],
)
def test_a_frozen_table_that_rescues_is_filled_once_it_has_the_columns(
    root: Root, command: Command, engine: Mapping[str, object]
) -> None:
    frozen = root_with(root, engine, schema_changes_of={"chess": "freeze"}, frozen="rescue")
    one, three = root.register("chess", V1), root.register("chess", V3)
    send(frozen, 0, "chess", one, name="a", score=1)
    without_errors(frozen.run())
    send(frozen, 1, "chess", three, name="b", points=2, tags=["x"], **{"in": {"a": 0.5, "b": "y"}})
    # the newer bytes under the older id
    mixed = root.message(three)(name="c", tags=["z"]).SerializeToString()
    frozen.send([wrapper("chess", one, mixed)], 2)
    without_errors(frozen.run())
    assert values(frozen, "chess", "name", "score", "in") == [("a", 1, None), ("b", 2, {"a": 0.5}), ("c", 0, None)]
    made = root.message(three)
    left = [made(tags=["x"], **{"in": {"b": "y"}}).SerializeToString(), made(tags=["z"]).SerializeToString()]
    assert values(frozen, "chess", "_rescued") == [(None,), (left[0],), (left[1],)]
    columns = frozen.silver_columns("chess")
    spark, layout = root.spark, root.layout
    assert backfill_rescued(spark, layout, frozen.workplace().schemas, "chess") == BackfillReport("chess", 0, 2)
    assert frozen.silver_columns("chess") == columns

    evolving = root_with(root, engine)
    sink = Sink(str(engine.get("sink", "auto")))
    with crash.after_writes(1), pytest.raises(crash.Crash):
        backfill_rescued(spark, layout, evolving.workplace().schemas, "chess", sink)
    # it has the columns, and no row has a value in them
    assert values(evolving, "chess", "tags") == [(None,)] * 3
    said = command("backfill", "--rescued", "--root", str(root.folder), "--set", f"run.sink={sink.value}")
    assert (said.code, said.out) == (0, "chess: 2 rows filled, 0 still hold something\n")
    version = DeltaTable(root.silver_path("chess")).version()
    said = command("backfill", "--rescued", "--root", str(root.folder), "--set", f"run.sink={sink.value}")
    assert (said.code, said.out) == (0, "chess: 0 rows filled, 0 still hold something\n")
    assert DeltaTable(root.silver_path("chess")).version() == version
    assert values(evolving, "chess", "name", "score", "in", "tags", "_rescued") == [
        ("a", 1, None, None, None),
        ("b", 2, {"a": 0.5, "b": "y"}, ["x"], None),
        ("c", 0, None, ["z"], None),
    ]
    require_balance(evolving)
    send(evolving, 3, "chess", three, name="d", tags=["w"])
    without_errors(evolving.run())
    assert values(evolving, "chess", "tags")[3] == (["w"],)


def test_a_table_that_asks_waits_while_its_neighbours_go_on(root: Root, command: Command) -> None:
    asking = root_with(root, FLEET, schema_changes="ask")
    one, three = root.register("chess", V1), root.register("chess", V3)
    send(asking, 0, "chess", one, name="a", score=1)
    send(asking, 1, "go", one, name="b", score=2)
    without_errors(asking.run())
    send(asking, 2, "chess", three, name="c", points=3)
    send(asking, 3, "go", one, name="d", score=4)
    errors = {end.task.game: end.error for end in asking.run().ended}
    assert isinstance(errors["chess"], ApprovalNeeded)
    assert errors["go"] is None
    assert (len(asking.silver("chess")), len(asking.silver("go"))) == (1, 2)
    assert asking.quarantine() == []

    where = ("--root", str(root.folder), "--set", "games.schema_changes=ask")
    said = command("status", *where)
    assert "APPROVAL_NEEDED" in said.out
    assert command("schemas", "approve", "--game", "Chess", *where).code == 2
    assert "NOTHING_TO_APPROVE" in command("schemas", "approve", "--game", "go", *where).err
    assert "no schema 99" in command("schemas", "approve", "--game", "chess", "--schema", "99", *where).err
    said = command("schemas", "approve", "--game", "chess", *where)
    assert (said.code, said.out) == (0, f"chess: approved schema {three}; the next round takes its rows\n")
    without_errors(asking.run())
    assert values(asking, "chess", "name", "score", "tags") == [("a", 1, None), ("c", 3, [])]
    # what was approved stays so
    rebuild(Redecoder(asking.spark, asking.layout, asking.workplace().schemas), "chess")
    assert values(asking, "chess", "name", "score", "tags") == [("a", 1, None), ("c", 3, [])]


def test_only_a_game_with_a_table_is_filled(root: Root) -> None:
    with pytest.raises(GameUnknown):
        backfill_rescued(root.spark, root.layout, root.workplace().schemas, "chess")
