"""Quarantined rows decoded again, on tables made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.causes import Cause
from demux.core.errors import GameUnknown, RegistryUnavailable
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from demux.core.tables import SILVER_ORIGIN
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.replay import ReplayReport, games_in_quarantine, replay
from tests.support.flow import crash
from tests.support.spark.registries import CountingRegistry, every_game
from tests.support.spark.tables import (
    MOMENT,
    bronze_row,
    names_in,
    quarantine_row,
    read,
    write_bronze,
    write_quarantine,
)

EVENT = 'syntax = "proto3"; package g; message Event { string name = 1; }'
ANN, BOB, BROKEN = b"\x0a\x03ann", b"\x0a\x03bob", b"\x0a\x03a"
ALL = QuarantineFilter()
HOSTILE = "a'b; drop table x"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path))


@pytest.fixture
def registry() -> CountingRegistry:
    registry = CountingRegistry()
    registry.register("chess", EVENT, "g/event.proto", ())
    return registry


@pytest.fixture
def schemas(spark: SparkSession, layout: Layout, registry: CountingRegistry) -> SchemaStore:
    return SchemaStore(spark, layout, every_game(registry))


def silver(layout: Layout, game: str) -> list[tuple[object, ...]]:
    return read(layout.silver(names_of(game).key), "_record_id", "name")


def left(layout: Layout) -> list[tuple[object, ...]]:
    return read(layout.quarantine, "record_id", "game_name", "cause")


@pytest.mark.parametrize("sink", [Sink.FILES, Sink.SPARK])
def test_what_decodes_moves_and_what_does_not_stays_with_the_cause_of_today(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, sink: Sink
) -> None:
    write_quarantine(
        layout.quarantine,
        quarantine_row("chess", 0, Cause.UNKNOWN_SCHEMA, 1, ANN),
        quarantine_row("chess", 1, Cause.SCHEMA_FROZEN, 1, BOB),
        quarantine_row("chess", 2, Cause.UNKNOWN_SCHEMA, 1, BROKEN),
        quarantine_row("chess", 3, Cause.UNKNOWN_SCHEMA, 44, ANN),
        quarantine_row("chess", 4, Cause.UNKNOWN_SCHEMA, None, ANN),
        quarantine_row("go", 5, Cause.UNKNOWN_SCHEMA, 1, ANN),
    )
    assert replay(spark, layout, schemas, "chess", ALL, sink) == ReplayReport("chess", 5, 2)
    # there was no table before
    assert silver(layout, "chess") == [("t/0/0", "ann"), ("t/0/1", "bob")]
    assert names_in(layout.silver("chess")) == ["name", *(column.name for column in SILVER_ORIGIN)]
    assert left(layout) == [
        ("t/0/2", "chess", "MALFORMED_PAYLOAD"),
        ("t/0/3", "chess", "UNKNOWN_SCHEMA"),
        ("t/0/4", "chess", "UNKNOWN_SCHEMA"),
        ("t/0/5", "go", "UNKNOWN_SCHEMA"),
    ]
    assert [sentence for (sentence,) in read(layout.quarantine, "sentence")] == [
        "Error parsing message with type 'g.Event': Wire format was corrupt",
        "The record has no schema id.",
        "The registry has no schema 44.",
        "Then.",
    ]
    assert replay(spark, layout, schemas, "chess", ALL, sink) == ReplayReport("chess", 3, 0)
    assert len(silver(layout, "chess")) == 2


def test_only_rows_of_the_chosen_causes_are_tried(spark: SparkSession, layout: Layout, schemas: SchemaStore) -> None:
    write_quarantine(
        layout.quarantine,
        quarantine_row(HOSTILE, 0, Cause.UNKNOWN_SCHEMA, 1, ANN),
        quarantine_row(HOSTILE, 1, Cause.SCHEMA_FROZEN, 1, BOB),
    )
    assert games_in_quarantine(spark, layout, QuarantineFilter(causes=(Cause.SCHEMA_FROZEN,))) == (HOSTILE,)
    assert games_in_quarantine(spark, layout, QuarantineFilter(causes=(Cause.SCHEMA_CONFLICT,))) == ()
    assert replay(spark, layout, schemas, HOSTILE, QuarantineFilter(causes=(Cause.SCHEMA_FROZEN,))) == ReplayReport(
        HOSTILE, 1, 1
    )
    assert silver(layout, HOSTILE) == [("t/0/1", "bob")]
    assert left(layout) == [("t/0/0", HOSTILE, "UNKNOWN_SCHEMA")]


def test_records_that_the_source_holds_twice_are_replayed_both(
    spark: SparkSession, layout: Layout, schemas: SchemaStore
) -> None:
    twice = quarantine_row("chess", 0, Cause.UNKNOWN_SCHEMA, 1, ANN)
    other = quarantine_row("chess", 1, Cause.UNKNOWN_SCHEMA, 1, BROKEN)
    write_quarantine(layout.quarantine, twice, twice, other, other)
    assert replay(spark, layout, schemas, "chess", ALL) == ReplayReport("chess", 4, 2)
    assert silver(layout, "chess") == [("t/0/0", "ann"), ("t/0/0", "ann")]
    assert left(layout) == [("t/0/1", "chess", "MALFORMED_PAYLOAD")] * 2


@pytest.mark.parametrize("sink", [Sink.FILES, Sink.SPARK])
def test_copies_of_a_record_that_is_in_silver_are_replayed_all_and_once_also_where_a_replay_died(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, sink: Sink
) -> None:
    early = quarantine_row("chess", 0, Cause.SCHEMA_FROZEN, 1, ANN)
    for copies in (1, 2):
        write_quarantine(layout.quarantine, early)
        assert replay(spark, layout, schemas, "chess", ALL, sink).decoded == 1
        assert silver(layout, "chess") == [("t/0/0", "ann")] * copies
    write_quarantine(layout.quarantine, early, early, quarantine_row("chess", 1, Cause.UNKNOWN_SCHEMA, 1, BROKEN))
    # it dies once silver is written, and another copy comes
    chosen = QuarantineFilter(causes=(Cause.SCHEMA_FROZEN,))
    with crash.after_writes(1, crash.Death), pytest.raises(crash.Death):
        replay(spark, layout, schemas, "chess", chosen, sink)
    assert (len(silver(layout, "chess")), len(left(layout))) == (4, 3)
    write_quarantine(layout.quarantine, early)
    # whatever is chosen then
    other = QuarantineFilter(causes=(Cause.INVALID_SCHEMA,))
    assert replay(spark, layout, schemas, "chess", other, sink) == ReplayReport("chess", 4, 3)
    assert silver(layout, "chess") == [("t/0/0", "ann")] * 5
    assert left(layout) == [("t/0/1", "chess", "MALFORMED_PAYLOAD")]
    assert replay(spark, layout, schemas, "chess", other, sink) == ReplayReport("chess", 0, 0)


def test_only_rows_set_aside_since_a_time_are_tried_and_their_older_copies_stay(
    spark: SparkSession, layout: Layout, schemas: SchemaStore
) -> None:
    old, new = (
        quarantine_row("chess", 0, Cause.UNKNOWN_SCHEMA, 1, ANN) | {"quarantined_at": MOMENT + timedelta(seconds=at)}
        for at in (0, 1)
    )
    undated = quarantine_row("chess", 1, Cause.UNKNOWN_SCHEMA, 1, BOB)
    write_quarantine(layout.quarantine, old, new, undated)
    since = QuarantineFilter(since=MOMENT + timedelta(microseconds=1))
    assert games_in_quarantine(spark, layout, since) == ("chess",)
    assert games_in_quarantine(spark, layout, replace(since, before=since.since)) == ()
    assert replay(spark, layout, schemas, "chess", since) == ReplayReport("chess", 1, 1)
    assert silver(layout, "chess") == [("t/0/0", "ann")]
    assert read(layout.quarantine, "record_id", "quarantined_at") == [("t/0/0", MOMENT), ("t/0/1", None)]


def test_rows_are_replayed_by_their_own_ref(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, registry: CountingRegistry
) -> None:
    guid = "89791762-2336-4186-9674-299b90a802e2"
    by_guid = quarantine_row("chess", 0, Cause.UNKNOWN_SCHEMA, None, ANN) | {"schema_guid": guid}
    framed = quarantine_row("chess", 1, Cause.INVALID_SCHEMA, 1, BOB) | {"message_indexes": "1"}
    lost = quarantine_row("chess", 2, Cause.INVALID_SCHEMA, 1, BOB) | {"message_indexes": "2"}
    # the same record and bytes, once by each way
    again = quarantine_row("chess", 2, Cause.INVALID_SCHEMA, 1, BOB)
    write_quarantine(layout.quarantine, by_guid, framed, lost, again)
    assert replay(spark, layout, schemas, "chess", ALL) == ReplayReport("chess", 4, 1)
    assert read(layout.quarantine, "record_id", "cause", "schema_id", "schema_guid", "message_indexes") == [
        ("t/0/0", "UNKNOWN_SCHEMA", None, guid, None),
        ("t/0/1", "INVALID_SCHEMA", 1, None, "1"),
        ("t/0/2", "INVALID_SCHEMA", 1, None, "2"),
    ]

    registry.guids[guid] = registry.register("chess", EVENT + " message Other { bytes name = 1; }", "g/event.proto", ())
    write_quarantine(layout.quarantine, quarantine_row("chess", 3, Cause.UNKNOWN_SCHEMA, 2, BOB))
    assert replay(spark, layout, schemas, "chess", ALL) == ReplayReport("chess", 4, 2)
    rows = read(layout.silver(names_of("chess").key), "_record_id", "name", "_schema_id")
    assert rows == [("t/0/0", "ann", 2), ("t/0/2", "bob", 1), ("t/0/3", "bob", 2)]
    assert read(layout.quarantine, "record_id") == [("t/0/1",), ("t/0/2",)]


def test_without_its_registry_a_replay_changes_nothing(
    spark: SparkSession, layout: Layout, schemas: SchemaStore, registry: CountingRegistry
) -> None:
    write_quarantine(layout.quarantine, quarantine_row("chess", 0, Cause.UNKNOWN_SCHEMA, 1, ANN))
    registry.reachable = False
    with pytest.raises(RegistryUnavailable):
        replay(spark, layout, schemas, "chess", ALL)
    assert left(layout) == [("t/0/0", "chess", "UNKNOWN_SCHEMA")]
    assert not (Path(layout.root) / "silver").exists()


def test_without_a_quarantine_there_is_nothing_to_replay(spark: SparkSession, layout: Layout) -> None:
    assert games_in_quarantine(spark, layout, ALL) == ()


def test_a_game_that_bronze_does_not_have_is_not_rebuilt(
    spark: SparkSession, layout: Layout, schemas: SchemaStore
) -> None:
    write_bronze(layout.bronze, bronze_row("chess", 0))
    write_quarantine(layout.quarantine, quarantine_row("Chess", 0, Cause.UNKNOWN_SCHEMA, 1, ANN))
    with pytest.raises(GameUnknown) as unknown:
        rebuild(Redecoder(spark, layout, schemas), "Chess")
    assert unknown.value.message == "Bronze has no rows of a game Chess."
    assert left(layout) == [("t/0/0", "Chess", "UNKNOWN_SCHEMA")]
