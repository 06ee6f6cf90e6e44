"""Records counted by the engine itself, over small tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.storage.table_address import TableAddress
from demux.core.tables import BRONZE
from demux.operations.reconcile.balance import (
    DifferenceExample,
    Grain,
    LedgerFault,
    RecordLocations,
    SourceLocations,
    Tally,
)
from demux.operations.reconcile.duckdb_engine import Engine, counting_engine, tallies_of, with_examples
from demux.operations.reconcile.location_sql import (
    INNER_HOLES,
    NO_SOURCE,
    PLACES_VIEWS,
    SEEN,
    TAKEN_VIEWS,
    both_readings,
)
from demux.operations.reconcile.table_snapshots import Snapshot

Rows = Sequence[Mapping[str, object]]

NOWHERE = Snapshot(TableAddress(""), -1, BRONZE)
_TEXT = ("game_name", "record_id", "origin", "topic", "stage", "reason", "game", "_record_id", "log")
_NUMBERS = ("partition", "offset", "batch_id", "bound", "ended")
_COLUMNS = {
    "bronze": ("game_name", "record_id", "batch_id", "origin", "topic", "partition", "offset"),
    "quarantine_before": ("stage", "game_name", "record_id", "batch_id", "origin", "topic", "partition", "offset"),
    "quarantine_now": ("stage", "game_name", "record_id", "batch_id", "origin", "topic", "partition", "offset"),
    "dropped": ("stage", "game_name", "record_id", "origin", "topic", "partition", "offset"),
    "removed": ("reason", "game_name", "record_id", "batch_id", "origin", "topic", "partition", "offset"),
    "silver": ("game", "_record_id"),
    "bounds": ("game", "bound"),
    "source_before": ("topic", "partition", "offset"),
    "source_now": ("topic", "partition", "offset"),
    "ends": ("log", "partition", "ended"),
}


@pytest.fixture
def engine() -> Iterator[Engine]:
    with counting_engine() as found:
        yield found


def fill(engine: Engine, **tables: Rows) -> None:
    """Register tables, empty ones where none are given, and make the views."""
    for name, columns in _COLUMNS.items():
        schema = pa.schema([(one, pa.string() if one in _TEXT else pa.int64()) for one in columns])
        engine.register(name, pa.Table.from_pylist([dict(row) for row in tables.get(name, ())], schema=schema))
    engine.execute(both_readings("quarantine", same=False))
    engine.execute(NO_SOURCE)
    engine.execute(both_readings("source", same=False))
    engine.execute(PLACES_VIEWS)
    engine.execute(TAKEN_VIEWS)


def of(game: str | None, *records: str, **columns: object) -> list[dict[str, object]]:
    return [{"game_name": game, "record_id": record, **columns} for record in records]


def silver(game: str, *records: str) -> list[dict[str, object]]:
    return [{"game": game, "_record_id": record} for record in records]


def tallied(engine: Engine, grain: Grain = Grain.GAME) -> set[Tally]:
    return set(tallies_of(engine, RecordLocations, grain))


def test_records_in_the_same_places_are_one_tally_with_their_first_and_last_batch(engine: Engine) -> None:
    bronze = [*of("chess", "a", "b", batch_id=1), *of("chess", "c", batch_id=4), *of("go", "a", batch_id=2)]
    fill(engine, bronze=bronze, silver=silver("chess", "a", "b", "c"), bounds=[{"game": "chess", "bound": 3}])
    assert tallied(engine) == {
        Tally("chess", RecordLocations(1, 1, 1, 0, 0), 2, 1, 1),
        Tally("chess", RecordLocations(1, 0, 1, 0, 0), 1, 4, 4),
        Tally("go", RecordLocations(1, 0, 0, 0, 0), 1, 2, 2),
    }


def test_a_row_of_the_last_batch_that_a_game_has_read_is_due(engine: Engine) -> None:
    bronze = [*of("chess", "a", batch_id=3), *of("chess", "b", batch_id=4)]
    fill(engine, bronze=bronze, bounds=[{"game": "chess", "bound": 3}])
    assert tallied(engine) == {
        Tally("chess", RecordLocations(1, 1, 0, 0, 0), 1, 3, 3),
        Tally("chess", RecordLocations(1, 0, 0, 0, 0), 1, 4, 4),
    }


def test_each_place_of_a_record_counts_and_rows_of_stage_bronze_belong_to_no_game(engine: Engine) -> None:
    at_silver = {"stage": "silver"}
    fill(
        engine,
        bronze=of("chess", "a", "a", batch_id=0),
        silver=silver("chess", "a"),
        quarantine_before=[*of("chess", "a", "b", **at_silver), *of("chess", "x", stage="bronze")],
        quarantine_now=of("chess", "a", "c", **at_silver),
        dropped=[*of("chess", "a", **at_silver), *of("chess", "gone", **at_silver), *of("chess", "y", stage="bronze")],
        removed=[
            *of("chess", "a", reason="forgotten", batch_id=0),
            *of("chess", "old", reason="retired", batch_id=0),
            # interrupted: bronze still has it
            *of("chess", "a", reason="retired", batch_id=0),
        ],
    )
    assert tallied(engine) == {
        Tally("chess", RecordLocations(2, 0, 1, 1, 1, 2), 1, 0, 0),
        Tally("chess", RecordLocations(0, 0, 0, 1, 0), 1, None, None),
        Tally("chess", RecordLocations(0, 0, 0, 0, 1), 1, None, None),
        Tally("chess", RecordLocations(1, 1, 0, 0, 0, 0, 1), 1, 0, 0),
    }


def test_two_readings_of_one_version_are_read_once_and_count_in_both(engine: Engine) -> None:
    fill(engine, quarantine_now=of("chess", "a", stage="silver"))
    engine.execute(both_readings("quarantine", same=True))
    assert tallied(engine) == {Tally("chess", RecordLocations(0, 0, 0, 1, 1), 1, None, None)}


def test_each_round_of_a_game_has_its_own_tally(engine: Engine) -> None:
    fill(engine, bronze=[*of("chess", "a", "b", batch_id=1), *of("chess", "c", batch_id=2)])
    waits = RecordLocations(1, 0, 0, 0, 0)
    assert tallied(engine, Grain.ROUND) == {Tally("chess", waits, 2, 1, 1), Tally("chess", waits, 1, 2, 2)}


def test_records_of_the_source_are_counted_by_their_position(engine: Engine) -> None:
    unique = {"origin": "kafka", "topic": "t", "partition": 0}
    from_table = {**unique, "origin": "delta"}
    fill(
        engine,
        bronze=[
            *of("chess", "t/0/1", batch_id=1, offset=1, **from_table),
            *of("chess", "k/0/1", batch_id=2, offset=1, **unique),
            *of("chess", "delta/q/1/0", batch_id=3, origin="delta"),
        ],
        quarantine_now=of(None, "t/0/2", stage="bronze", batch_id=5, offset=2, **from_table),
        dropped=of(None, "t/0/3", stage="bronze", offset=3, **from_table),
        removed=[
            *of("go", "t/0/4", reason="retired", batch_id=0, offset=4, **from_table),
            *of("go", "t/0/5", reason="forgotten", batch_id=0, offset=5, **from_table),
        ],
        source_before=[{"topic": "t", "partition": 0, "offset": offset} for offset in (1, 1, 2, 9)],
        source_now=[{"topic": "t", "partition": 0, "offset": offset} for offset in (1, 1, 2)] + [{"topic": "t"}],
    )
    assert set(tallies_of(engine, SourceLocations)) == {
        Tally("chess", SourceLocations(1, 0, 2, 2, False), 1, 1, 1),
        Tally("chess", SourceLocations(1, 0, 0, 0, True), 2, 2, 3),
        Tally(None, SourceLocations(0, 1, 1, 1, False), 1, 5, 5),
        Tally(None, SourceLocations(0, 0, 1, 0, False), 1, None, None),
        Tally(None, SourceLocations(0, 0, 0, 0, False, 1), 1, None, None),
        Tally("go", SourceLocations(1, 0, 0, 0, False, 0, 0, 1), 1, 0, 0),
        Tally("go", SourceLocations(0, 0, 0, 0, False, 0, 1), 1, 0, 0),
    }


def test_the_first_examples_are_by_batch_those_without_one_last_and_then_by_id(engine: Engine) -> None:
    bronze = [*of("chess", "c", "b", batch_id=2), *of("chess", "z", batch_id=1), *of("go", "x", batch_id=1)]
    twice = silver("chess", *"bczz", "b", "c")
    fill(engine, bronze=bronze, silver=[*twice, *silver("go", *(f"s{number:02}" for number in range(30)))])
    doubled, strays = with_examples(engine, None, NOWHERE, RecordLocations, tallies_of(engine, RecordLocations))
    assert (doubled.kind, doubled.game, doubled.rows) == (LedgerFault.DOUBLED, "chess", 3)
    assert doubled.examples == (DifferenceExample("z", 1), DifferenceExample("b", 2), DifferenceExample("c", 2))
    assert (strays.kind, strays.game, strays.rows) == (LedgerFault.STRAY, "go", 30)
    assert strays.examples == tuple(DifferenceExample(f"s{number:02}", None) for number in range(20))


def test_examples_of_rounds_are_listed_once(engine: Engine) -> None:
    fill(engine, bronze=[*of("chess", "a", batch_id=1), *of("chess", "b", batch_id=2)], silver=silver("chess", *"aabb"))
    (doubled,) = with_examples(engine, None, NOWHERE, RecordLocations, tallies_of(engine, RecordLocations, Grain.ROUND))
    assert doubled.examples == (DifferenceExample("a", 1), DifferenceExample("b", 2))


def test_records_that_no_game_has_have_examples_too(engine: Engine) -> None:
    fill(engine, source_before=[{"topic": "t", "partition": 0, "offset": 7}])
    (missing,) = with_examples(engine, None, NOWHERE, SourceLocations, tallies_of(engine, SourceLocations))
    assert (missing.kind, missing.game, missing.examples) == (
        LedgerFault.NOT_TAKEN_IN,
        None,
        (DifferenceExample("t/0/7", None),),
    )


def test_offsets_of_kafka_are_counted_once_up_to_where_bronze_stands(engine: Engine) -> None:
    def at(*offsets: int, **columns: object) -> list[dict[str, object]]:
        row = {"origin": "kafka", "topic": "a/b", "partition": 0, **columns}
        return [{**row, "record_id": f"a/b@2/0/{offset}", "offset": offset} for offset in offsets]

    fill(
        engine,
        bronze=[*at(1, 2, 5, 5, 12, game_name="chess"), *at(1, origin="delta")],
        quarantine_now=[*at(7, stage="bronze"), *at(3, stage="silver")],
        dropped=[*at(7, 8, stage="bronze"), *at(4, stage="silver")],
        removed=[*at(2, 10, reason="retired"), *at(8, reason="forgotten")],
        ends=[{"log": "a/b@2", "partition": 0, "ended": 12}],
    )
    assert engine.execute(SEEN).fetchall() == [("a/b@2", 0, 1, 10, 6)]
    assert engine.execute(INNER_HOLES, {"most": 2}).fetchall() == [("a/b@2", 0, 3, 5), ("a/b@2", 0, 6, 7)]


@pytest.mark.parametrize(
    "game", ["'; DROP VIEW bronze; --", 'a"b', "$most", "{records}", "x\ny", "%", "\x00", "🎲", "", "NULL"]
)
def test_a_name_is_a_value_and_never_a_part_of_a_query(engine: Engine, game: str) -> None:
    bronze = of(game, game, batch_id=1)
    fill(engine, bronze=bronze, silver=silver(game, game, game), bounds=[{"game": game, "bound": 1}])
    tallies = tallies_of(engine, RecordLocations)
    assert tallies == [Tally(game, RecordLocations(1, 1, 2, 0, 0), 1, 1, 1)]
    (doubled,) = with_examples(engine, None, NOWHERE, RecordLocations, tallies)
    assert (doubled.game, doubled.examples) == (game, (DifferenceExample(game, 1),))


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.integers(0, 3)), max_size=20),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4)), max_size=20),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4)), max_size=10),
    st.integers(-1, 4),
)
def test_any_rows_are_counted_as_a_counter_counts_them(
    bronze: list[tuple[str, int, int]], decoded: list[tuple[str, int]], bad: list[tuple[str, int]], bound: int
) -> None:
    with counting_engine() as engine:
        fill(
            engine,
            bronze=[row for game, record, batch in bronze for row in of(game, str(record), batch_id=batch)],
            silver=[row for game, record in decoded for row in silver(game, str(record))],
            quarantine_before=[row for game, record in bad for row in of(game, str(record), stage="silver")],
            bounds=[{"game": "a", "bound": bound}],
        )
        found = Counter(
            {
                (tally.game, tally.places): tally.records
                for tally in tallies_of(engine, RecordLocations)
                if isinstance(tally.places, RecordLocations)
            }
        )
    records = {(game, record) for game, record, _ in bronze} | {*decoded} | {*bad}
    counted: Counter[tuple[Any, RecordLocations]] = Counter()
    for game, record in records:
        batches = [batch for at, one, batch in bronze if (at, one) == (game, record)]
        due = sum(batch <= bound for batch in batches) if game == "a" else 0
        counted[
            game, RecordLocations(len(batches), due, decoded.count((game, record)), bad.count((game, record)), 0)
        ] += 1
    assert found == counted


def test_the_engine_reads_no_file_no_network_and_no_variable_and_leaves_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = pa.table({"a": [1]})
    with counting_engine() as engine:
        assert [path.name.startswith("demux-ledger-") for path in tmp_path.iterdir()] == [True]
        with pytest.raises(duckdb.CatalogException):
            engine.execute("SELECT * FROM rows")
        with pytest.raises(duckdb.PermissionException):
            engine.execute("SELECT * FROM read_text('/etc/hostname')")
        with pytest.raises(duckdb.Error, match="disabled"):
            engine.execute("INSTALL httpfs")
        with pytest.raises(duckdb.Error, match="configuration"):
            engine.execute("SET memory_limit = '9GB'")
    assert (list(tmp_path.iterdir()), rows.num_rows) == ([], 1)
