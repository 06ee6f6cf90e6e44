"""A person is forgotten on a root that is read without Spark: no Java is there, and none is missed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import deltalake
import pytest

from demux.cli.options import settings_of
from demux.core.causes import Cause, Stage
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.bronze_games import position_id
from demux.core.errors import TableUnsuited
from demux.core.names import names_of
from demux.core.registry.folder import FolderRegistry
from demux.core.root.layout import Layout
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.core.tables import DROPPED, QUARANTINE, SILVER_ORIGIN
from demux.operations.erasure import requests
from demux.operations.erasure.requests import ErasureRequest, carry_out, unfinished_requests, write_down
from demux.operations.erasure.results import ALL_READ, RemovedRows
from demux.operations.erasure.search import SearchScope, search_game
from demux.operations.predicate.parser import parse
from demux.pipeline.context import root_of
from tests.support.flow.process import DEMUX, Said, run
from tests.support.spark.tables import MOMENT, bronze_row, position, quarantine_row, read, write, write_bronze

EVENT = 'syntax = "proto3"; package g; message Event { string name = 1; int64 score = 2; Player player = 3; } ' + (
    "message Player { string name = 1; int32 level = 2; }"
)
PLAYER = Struct((Column("name", Primitive.STRING, 1), Column("level", Primitive.INT, 2)))
COLUMNS = Struct(
    (
        Column("name", Primitive.STRING, 1),
        Column("score", Primitive.BIGINT, 2),
        Column("player", PLAYER, 3),
        *SILVER_ORIGIN,
    )
)
# SQL, a path and a pattern at once
GAME = "x' OR '1'='1`; %_../"
ANN, BOB = b"\x1a\x05\x0a\x03ann", b"\x1a\x05\x0a\x03bob"
WHERE = "player.name = 'ann'"


def silver_row(offset: int, name: str | None) -> dict[str, Any]:
    origin = {f"_{column}": value for column, value in position(offset).items()}
    return {**origin, "player": None if name is None else {"name": name, "level": 1}, "_decoded_at": MOMENT}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A root with ann as records 0 and 4 in silver, and 2, 3 (cut off), 6 (another schema) and 9 in quarantine."""
    root = Layout(str(tmp_path / "root"))
    schema_id = FolderRegistry(Path(f"{root.root}/registry")).register(GAME, EVENT, "g/event.proto", (), None)
    payloads = {0: ANN, 1: BOB, 2: ANN + b"\x14", 3: ANN[:-1], 4: ANN, 5: BOB, 6: ANN}

    def named(at: int) -> int:
        return 999 if at == 6 else schema_id

    write_bronze(
        root.bronze,
        *({**bronze_row(GAME, at, named(at), one), "batch_id": at // 4} for at, one in payloads.items()),
        # a copy that the source holds, and a namesake of another game
        {**bronze_row(GAME, 4, schema_id, ANN), "batch_id": 0},
        {**bronze_row("go", 20, schema_id, ANN), "batch_id": 0},
    )
    read_all = (position_id(None, root), BronzeOffset(100).number)
    table = root.silver(names_of(GAME).key)
    # Arrow's schemas do not have the numbers of fields
    root.storage.create_table(table, spark_struct(COLUMNS).jsonValue())
    people = [(0, "ann"), (1, "bob"), (4, "ann"), (4, "ann"), (5, None)]
    write(table, COLUMNS, [silver_row(*one) for one in people], txn=read_all)
    bad = [quarantine_row(GAME, at, Cause.MALFORMED_PAYLOAD, schema_id, payloads[at]) for at in (2, 3)]
    bad.append(quarantine_row(GAME, 6, Cause.UNKNOWN_SCHEMA, 999, ANN))
    refused = {"stage": Stage.BRONZE.value, "cause": Cause.MALFORMED_WRAPPER.value, "bytes": b"\xffann", **position(9)}
    write(root.quarantine, QUARANTINE, [*bad, refused])
    return root


@pytest.fixture
def without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    # protoc's folder has no java
    return {"JAVA_HOME": str(tmp_path / "none"), "PATH": str(Path(DEMUX).parent)}


def forget(layout: Layout, environment: dict[str, str], *words: str, where: str = WHERE) -> Said:
    return run([DEMUX, "forget", "--where", where, "--root", layout.root, *words], environment=environment)


def left(layout: Layout) -> dict[str, list[Any]]:
    """The offsets of the records in each table."""
    return {
        "silver": [one for (one,) in read(layout.silver(names_of(GAME).key), "_offset")],
        "bronze": read(layout.bronze, "offset", "batch_id"),
        "quarantine": [one for (one,) in read(layout.quarantine, "offset")],
    }


def numbers(said: Said) -> list[list[str]]:
    """The lines of its tables that have numbers, by word, without the game."""
    found = [line.replace(GAME, "game").split() for line in said.out.splitlines()]
    return [words[1:] for words in found if words and words[-1].isdigit()]


@pytest.mark.thorough
def test_a_person_is_found_and_removed_by_files(layout: Layout, without_java: dict[str, str]) -> None:
    before = left(layout)
    looked = forget(layout, without_java, "--dry-run")
    found = [["3", "4", "1", "2", "1"], ["game)", "0", "0", "0", "1", "1"]]
    assert (looked.code, looked.err, numbers(looked)) == (0, "", found)
    assert "1 game with nothing that is meant" in looked.out
    assert "1 row of bronze could not be searched" in looked.out
    assert left(layout) == before

    done = forget(layout, without_java, "--yes")
    assert (done.code, done.err) == (7, "")
    assert numbers(done) == [*found, ["3", "4", "1"], ["removed", "3", "4", "1"]]
    assert left(layout) == {
        "silver": [1, 5],
        "bronze": [(1, 0), (20, 0), (3, 0), (5, 1), (6, 1)],
        "quarantine": [3, 6, 9],
    }
    removed = read(layout.removed, "offset", "batch_id", "reason", "game_name", "timestamp")
    assert removed == [(at, batch, "forgotten", GAME, MOMENT) for at, batch in ((0, 0), (2, 0), (4, 0), (4, 1))]
    assert read(layout.forget, "game_name", "rows_silver", "rows_bronze", "rows_quarantine") == [(GAME, 3, 4, 1)]

    rest = forget(layout, without_java, "--yes", "--unreadable-too")
    assert (rest.code, rest.err) == (7, "")
    assert left(layout)["quarantine"] == [3]
    assert forget(layout, without_java, "--game", GAME, "--unreadable-too").out.splitlines()[-1] == "no record matches"


def test_what_was_dropped_from_quarantine_is_searched_in_bronze(layout: Layout) -> None:
    dropped = {column.name: None for column in DROPPED} | {"stage": Stage.SILVER.value, "game_name": GAME}
    write(layout.dropped, DROPPED, [{**dropped, **position(2)}, {**dropped, **position(3)}])
    deltalake.DeltaTable(layout.quarantine).delete("offset IN (2, 3)")
    with search_game(scope(layout), GAME, ALL_READ) as search:
        assert (search.result.quarantine, search.result.bronze, search.result.unreadable) == (0, 4, 2)
        assert search.rows is not None
        rows = [row for batch in search.rows for row in batch.to_pylist()]
    assert sorted((row["offset"], row["batch_id"]) for row in rows) == [(0, 0), (2, 0), (4, 0), (4, 1)]


def test_rows_that_their_game_has_not_read_stay(layout: Layout) -> None:
    with search_game(scope(layout), GAME, 0) as search:
        assert (search.result.unsearched, search.result.bronze) == (3, 3)
        assert search.rows is not None
        rows = [row for batch in search.rows for row in batch.to_pylist()]
    # of the record that bronze has twice, the copy that is read
    assert sorted((row["offset"], row["batch_id"]) for row in rows) == [(0, 0), (2, 0), (4, 0)]
    with search_game(scope(layout), GAME, -1) as search:
        # all of it waits
        assert (search.result.rows, search.rows, search.result.unsearched) == (0, None, 8)


def test_a_copy_that_was_read_after_the_request_was_written_down_goes_too(layout: Layout) -> None:
    request = ErasureRequest("a", GAME)
    with search_game(scope(layout), GAME, 0) as search:
        assert search.rows is not None
        write_down(None, layout, request, search.rows, MOMENT)
    assert unfinished_requests(None, layout) == (request,)
    removed = carry_out(None, layout, request, ALL_READ)
    assert removed == RemovedRows("a", GAME, silver=3, bronze=4, quarantine=1)
    assert unfinished_requests(None, layout) == ()
    assert carry_out(None, layout, request, ALL_READ) == RemovedRows("a", GAME, 0, 0, 0)
    assert sorted(batch for _, batch in read(layout.removed, "offset", "batch_id")) == [0, 0, 0, 1]


def test_a_request_of_more_records_than_a_portion_is_carried_out_in_portions(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_MOST_RECORDS", 2)
    request = ErasureRequest("a", GAME)
    with search_game(scope(layout), GAME, ALL_READ) as search:
        assert search.rows is not None
        write_down(None, layout, request, search.rows, MOMENT)
    assert carry_out(None, layout, request) == RemovedRows("a", GAME, silver=3, bronze=4, quarantine=1)
    assert left(layout)["bronze"] == [(1, 0), (20, 0), (3, 0), (5, 1), (6, 1)]


def test_a_table_that_only_spark_reads_is_named_before_anything_is_written_down(layout: Layout) -> None:
    table = layout.silver(names_of(GAME).key)
    properties = {"delta.enableDeletionVectors": "true"}
    deltalake.DeltaTable(table).alter.set_table_properties(properties)
    with pytest.raises(TableUnsuited, match="--spark") as error, search_game(scope(layout), GAME, ALL_READ):
        raise AssertionError
    assert error.value.fields["table"] == table


def scope(layout: Layout) -> SearchScope:
    place = root_of(settings_of(None, layout.root, []), None, threading.Event())
    return SearchScope(None, layout, place.schemas, parse(WHERE), unreadable_too=False)
