"""The producer's events, every fault and every hostile name among them, through bronze and silver."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from demux.core.causes import Cause, Stage
from demux.core.names import names_of
from demux.core.protobuf.envelope import envelope_of
from demux.core.settings.settings import Engine
from demux.core.settings.source import WrapperSettings
from demux.core.tables import SILVER_ORIGIN
from demux.pipeline.round import Round
from producer.faults import Fault
from producer.run import ProduceReport
from producer.schemas import HOSTILE
from tests.support.flow.fleet import FLEET, STREAM
from tests.support.flow.root import Root, by_id, columns, rows

pytestmark = [pytest.mark.both_lanes, pytest.mark.timeout(900)]


@dataclass(frozen=True, slots=True)
class Spine:
    outer: Path
    root: Root
    report: ProduceReport
    round: Round

    @property
    def games(self) -> list[str]:
        return [game.game for game in self.report.games]


@pytest.fixture(
    scope="module",
    params=[pytest.param(STREAM, id="stream", marks=pytest.mark.oldest), pytest.param(FLEET, id="fleet")],
)
def spine(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Spine:
    outer = tmp_path_factory.mktemp("spine")
    # deep enough that `../../..` would still be inside of `outer`
    root = Root.at(spark, outer / "a" / "b" / "c" / "root", run=request.param)
    report = root.produce(events=600, games=2, hostile=len(HOSTILE), versions=3, fault_rate=0.4)
    return Spine(outer, root, report, root.run())


def test_the_events_have_every_fault_and_every_hostile_name(spine: Spine) -> None:
    assert set(spine.report.faults) == set(Fault)
    assert set(HOSTILE) < set(spine.games)


def test_the_round_reports_what_the_producer_sent(spine: Spine) -> None:
    refused = spine.report.quarantine[Cause.MALFORMED_WRAPPER] + spine.report.quarantine[Cause.INVALID_GAME_NAME]
    assert spine.round.ingested.rows_in == 600
    assert spine.round.ingested.rows_quarantined == refused
    reports = {end.task.game: end.report for end in spine.round.ended}
    counted = {game: (r.rows_in, r.rows_silver, r.rows_quarantined) for game, r in reports.items() if r is not None}
    assert counted == {g.game: (g.bronze, g.silver, g.bronze - g.silver) for g in spine.report.games}


def test_bronze_has_as_many_rows_of_each_game_as_were_sent(spine: Spine) -> None:
    counted = Counter(row["game_name"] for row in spine.root.bronze())
    assert counted == {game.game: game.bronze for game in spine.report.games}


def test_silver_has_as_many_rows_of_each_game_as_were_valid(spine: Spine) -> None:
    assert {game: len(spine.root.silver(game)) for game in spine.games} == {
        game.game: game.silver for game in spine.report.games
    }


def test_quarantine_has_as_many_rows_of_each_cause_as_were_spoiled(spine: Spine) -> None:
    found = spine.root.quarantine()
    assert Counter(row["cause"] for row in found) == {
        cause.value: count for cause, count in spine.report.quarantine.items()
    }
    of_games = Counter((row["game_name"], row["cause"]) for row in found if row["stage"] == Stage.SILVER.value)
    assert of_games == {
        (game.game, cause.value): count for game in spine.report.games for cause, count in game.quarantine.items()
    }


def test_every_record_is_in_exactly_one_place(spine: Spine) -> None:
    sent = {f"events/{row['partition']}/{row['offset']}" for row in rows(spine.root.settings.source_path)}
    quarantined = [row["record_id"] for row in spine.root.quarantine()]
    silver = [row["_record_id"] for game in spine.games for row in spine.root.silver(game)]
    assert len(sent) == 600
    assert Counter(quarantined + silver) == Counter(sent)


def test_every_row_of_bronze_is_in_the_silver_table_of_its_own_game_or_in_quarantine(spine: Spine) -> None:
    bronze = {row["record_id"]: row["game_name"] for row in spine.root.bronze()}
    silver = {row["_record_id"]: game for game in spine.games for row in spine.root.silver(game)}
    undecoded = {
        row["record_id"]: row["game_name"] for row in spine.root.quarantine() if row["stage"] == Stage.SILVER.value
    }
    assert silver | undecoded == bronze


def test_bronze_keeps_the_wrappers_fields_and_where_the_record_came_from(spine: Spine, wrapper: type[Message]) -> None:
    sent = {f"events/{row['partition']}/{row['offset']}": row for row in rows(spine.root.settings.source_path)}
    for row in spine.root.bronze():
        source = sent[row["record_id"]]
        parsed: Any = wrapper.FromString(source["value"])
        assert (row["game_name"], row["schema_id"], row["payload"]) == (
            parsed.game_name,
            parsed.schema_id,
            parsed.payload,
        )
        carried = ("topic", "partition", "offset", "timestamp", "key", "headers")
        assert {name: row[name] for name in carried} == {name: source[name] for name in carried}


def test_quarantine_keeps_the_bytes_of_what_it_holds(spine: Spine) -> None:
    sent = {f"events/{row['partition']}/{row['offset']}": row["value"] for row in rows(spine.root.settings.source_path)}
    payloads = {row["record_id"]: row["payload"] for row in spine.root.bronze()}
    for row in spine.root.quarantine():
        kept = sent if row["stage"] == Stage.BRONZE.value else payloads
        assert row["bytes"] == kept[row["record_id"]]
        assert row["sentence"]


def test_a_silver_row_has_the_values_of_its_payload(spine: Spine) -> None:
    payloads = by_id(spine.root.bronze())
    messages = {schema_id: spine.root.message(schema_id) for schema_id in spine.report.schema_ids}
    for game in spine.games:
        for row in spine.root.silver(game):
            source = payloads[row["_record_id"]]
            parsed: Any = messages[source["schema_id"]].FromString(source["payload"])
            assert (row["game_name"], row["user_name"], row["is_connection_stable"], row["_schema_id"]) == (
                parsed.game_name,
                parsed.user_name,
                parsed.is_connection_stable,
                source["schema_id"],
            )


def test_the_origin_comes_after_the_messages_own_columns(spine: Spine) -> None:
    origin = [column.name for column in SILVER_ORIGIN]
    for game in spine.games:
        names = spine.root.silver_columns(game)
        assert names[-len(origin) :] == origin
        assert names[:3] == ["game_name", "user_name", "event_timestamp"]


def test_each_name_has_a_table_of_its_own_and_nothing_else_is_below_silver(spine: Spine) -> None:
    tables = {path.name for path in (spine.root.folder / "silver").iterdir()}
    assert tables == {names_of(game).key for game in spine.games}
    assert len(tables) == len(spine.games) == 12
    checkpoints = {path.name for path in (spine.root.folder / "checkpoints").glob("silver/*")}
    assert checkpoints == (tables if spine.root.settings.run.engine is Engine.STREAM else set())


def test_no_name_leads_out_of_the_root(spine: Spine) -> None:
    folders = [path for path in spine.outer.rglob("*") if not path.is_relative_to(spine.root.folder)]
    assert sorted(path.relative_to(spine.outer).as_posix() for path in folders) == ["a", "a/b", "a/b/c"]
    below = {path.name for path in spine.root.folder.iterdir()}
    assert below <= {"source", "registry", "bronze", "quarantine", "silver", "checkpoints", "control", "logs"}


def test_a_second_run_has_nothing_to_do_and_changes_no_table(spine: Spine) -> None:
    def versions() -> dict[str, int]:
        tables = [spine.root.layout.bronze, spine.root.layout.quarantine, *map(spine.root.silver_path, spine.games)]
        return {table: DeltaTable(table).version() for table in tables}

    before, everything = versions(), spine.root.everything()
    again = spine.root.run()
    assert (again.ingested.rows_in, again.ended, again.complete) == (0, (), True)
    assert again.plan.is_empty
    assert versions() == before
    assert spine.root.everything() == everything


def test_columns_of_the_whole_spine_are_those_of_the_newest_version(spine: Spine) -> None:
    message = spine.root.message(spine.report.schema_ids[2])
    assert set(columns(spine.root.silver_path("chess"))) - {column.name for column in SILVER_ORIGIN} == {
        field.name for field in message.DESCRIPTOR.fields
    }


@pytest.fixture(scope="module")
def wrapper() -> type[Message]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of

    compiled = envelope_of(WrapperSettings())
    return message_class(pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)), compiled.message)
