from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from demux.core.causes import Cause
from demux.core.errors import RegistryUnavailable, SettingsInvalid, StorageFailed
from demux.core.registry.folder import FolderRegistry
from producer.delta_sink import DeltaSink
from producer.faults import Fault
from producer.records import Records
from producer.run import MADE_BY, ProduceReport, ProduceRequest, clean_up, produce
from tools.memory_registry import MemoryRegistry

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
SMALL = ProduceRequest(events=300, games=2, versions=2, fault_rate=0.2, batch_events=128)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "source")


def sent(path: str) -> list[dict[str, Any]]:
    table = DeltaTable(path).to_pyarrow_table()
    return list(table.sort_by([("timestamp", "ascending")]).to_pylist())


def run(path: str, request: ProduceRequest = SMALL, now: datetime = NOW) -> ProduceReport:
    return produce(request, MemoryRegistry(made_by=MADE_BY), DeltaSink(path), now=now)


def test_the_table_looks_like_a_topic(path: str) -> None:
    run(path)
    assert DeltaTable(path).to_pyarrow_table().schema.remove_metadata() == pa.schema(
        {
            "value": pa.binary(),
            "topic": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("us", "UTC"),
            "key": pa.binary(),
            "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
        }
    )
    row = sent(path)[0]
    assert (row["topic"], row["timestamp"]) == ("events", NOW)
    assert row["headers"] == [{"key": "made-by", "value": b"demux producer"}]


def test_offsets_are_dense_in_each_partition_over_calls(path: str) -> None:
    run(path)
    run(path, now=NOW + timedelta(hours=1))
    for partition in (0, 1):
        offsets = [row["offset"] for row in sent(path) if row["partition"] == partition]
        assert offsets == list(range(len(offsets)))
    assert len(sent(path)) == 600


def test_the_same_seed_gives_the_same_bytes_on_another_target(path: str, tmp_path: Path) -> None:
    run(path)
    run(str(tmp_path / "other"), ProduceRequest(events=300, games=2, versions=2, fault_rate=0.2, batch_events=7))
    assert [row["value"] for row in sent(path)] == [row["value"] for row in sent(str(tmp_path / "other"))]


def test_a_second_call_sends_the_events_that_follow(path: str, tmp_path: Path) -> None:
    first, second = run(path), run(path)
    assert (first.first, second.first) == (0, 300)
    run(str(tmp_path / "once"), ProduceRequest(events=600, games=2, versions=2, fault_rate=0.2))
    twice = Counter(row["value"] for row in sent(path))
    assert twice == Counter(row["value"] for row in sent(str(tmp_path / "once")))


def test_the_report_counts_what_is_in_the_table(path: str) -> None:
    report = run(path)
    assert report.events == len(sent(path)) == 300
    assert report.faults[Fault.NULL_VALUE] == sum(row["value"] is None for row in sent(path)) > 0
    assert sum(report.faults.values()) - report.faults[Fault.EMPTY_PAYLOAD] == sum(report.quarantine.values())
    without_game = report.quarantine[Cause.MALFORMED_WRAPPER] + report.quarantine[Cause.INVALID_GAME_NAME]
    assert sum(game.bronze for game in report.games) == 300 - without_game
    assert [game.game for game in report.games] == ["chess", "go"]
    for game in report.games:
        assert game.bronze == game.silver + sum(game.quarantine.values())
        assert set(game.quarantine) <= {Cause.UNKNOWN_SCHEMA, Cause.MALFORMED_PAYLOAD}
    assert report.schema_ids == (1, 2, 3, 4)


def test_earlier_messages_are_sent_again_with_new_offsets(path: str) -> None:
    run(path)
    before = sent(path)
    progress: list[int] = []
    later = NOW + timedelta(hours=1)
    again = ProduceRequest(events=10, games=2, versions=2, resend=40)
    report = produce(again, MemoryRegistry(), DeltaSink(path), now=later, on_progress=progress.append)
    assert (report.resent, report.events, progress) == (40, 10, [40, 10])
    after = sent(path)[300:]
    assert [(row["value"], row["key"]) for row in after[:40]] == [(row["value"], row["key"]) for row in before[-40:]]
    assert [row["timestamp"] for row in after] == [later + timedelta(microseconds=number) for number in range(50)]
    positions = {(row["partition"], row["offset"]) for row in sent(path)}
    assert len(positions) == 350


def test_more_cannot_be_sent_again_than_there_is(path: str) -> None:
    assert run(path, ProduceRequest(events=5, games=1, versions=1, resend=9)).resent == 0
    assert run(path, ProduceRequest(events=0, games=1, versions=1, resend=9)).resent == 5


def test_a_new_version_in_mid_stream_leaves_the_known_ids_alone(path: str, tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path / "registry", made_by=MADE_BY)
    first = produce(SMALL, registry, DeltaSink(path), now=NOW)
    more = produce(ProduceRequest(events=50, games=3, versions=3), registry, DeltaSink(path), now=NOW)
    assert first.schema_ids == (1, 2, 3, 4)
    assert more.schema_ids == (1, 2, 5, 3, 4, 6, 7, 8, 9)
    assert registry.schema(5).version == 3


def test_a_table_of_somebody_else_is_neither_written_nor_removed(path: str, tmp_path: Path) -> None:
    write_deltalake(path, pa.table({"value": [b"real"]}))
    registry = FolderRegistry(tmp_path / "registry", made_by=MADE_BY)
    with pytest.raises(SettingsInvalid, match="was not made by the producer"):
        produce(SMALL, registry, DeltaSink(path), now=NOW)
    assert not (tmp_path / "registry").exists()
    assert clean_up(MemoryRegistry(), DeltaSink(path)).target is False
    assert DeltaTable(path).to_pyarrow_table().to_pylist() == [{"value": b"real"}]


def test_clean_up_removes_the_table_and_the_marked_schemas_and_nothing_else(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "registry"
    FolderRegistry(folder).register("mine", 'syntax = "proto3"; message M {}', "m.proto", ())
    registry = FolderRegistry(folder, made_by=MADE_BY)
    produce(SMALL, registry, DeltaSink(path), now=NOW)
    (Path(path) / "notes.txt").write_text("mine")
    report = clean_up(registry, DeltaSink(path))
    assert (report.target, report.schema_ids) == (True, (2, 3, 4, 5))
    assert [file.name for file in Path(path).iterdir()] == ["notes.txt"]
    assert registry.subjects() == ("mine",)
    again = clean_up(registry, DeltaSink(path))
    assert (again.target, again.schema_ids) == (False, ())


def test_after_clean_up_everything_starts_again(path: str) -> None:
    registry, sink = MemoryRegistry(made_by=MADE_BY), DeltaSink(path)
    produce(SMALL, registry, sink, now=NOW)
    assert clean_up(registry, sink).target is True
    assert not Path(path).exists()
    assert produce(SMALL, registry, sink, now=NOW).first == 0


def test_of_two_producers_at_the_same_time_the_second_to_commit_is_refused(path: str) -> None:
    run(path)
    slow, quick = DeltaSink(path), DeltaSink(path)
    records = slow.newest(10)
    slow.write(records)
    quick.write(records)
    with pytest.raises(StorageFailed, match="Another producer wrote to"):
        slow.write(records)
    assert len(sent(path)) == 320


def test_two_producers_cannot_both_make_the_table(path: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    run(other)
    records = DeltaSink(other).newest(10)
    slow, quick = DeltaSink(path), DeltaSink(path)
    assert slow.position().sent == 0
    quick.write(records)
    with pytest.raises(StorageFailed, match="Another producer wrote to"):
        slow.write(records)
    assert len(sent(path)) == 10


def test_a_target_that_cannot_be_written_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed) as failure:
        run(str(tmp_path / "file" / "source"))
    assert str(tmp_path / "file" / "source") in failure.value.message


def test_a_registry_that_does_not_answer_sends_nothing(path: str) -> None:
    registry = MemoryRegistry()
    registry.reachable = False
    with pytest.raises(RegistryUnavailable):
        produce(SMALL, registry, DeltaSink(path), now=NOW)
    assert not Path(path).exists()


def test_no_events_make_no_table(path: str) -> None:
    assert run(path, ProduceRequest(events=0, games=1, versions=1)).events == 0
    assert not Path(path).exists()


def test_all_mistakes_of_a_request_are_said_at_once(path: str) -> None:
    with pytest.raises(SettingsInvalid) as failure:
        run(path, ProduceRequest(events=-1, games=0, versions=0, fault_rate=1.5, hostile=-1))
    assert failure.value.fields["mistakes"] == [
        "events is -1, and must be at least 0",
        "versions is 0, and must be at least 1",
        "hostile is -1, and must be from 0 to 10",
        "fault_rate is 1.5, and must be from 0 to 1",
        "there are no games",
    ]


def test_an_empty_batch_of_records_changes_no_offset(path: str) -> None:
    run(path)
    sink = DeltaSink(path)
    before = sink.position()
    empty = sink.newest(0)
    assert isinstance(empty, Records)
    assert (empty.values, sink.position()) == ([], before)
