"""Facts from tables on this machine, written here as the stages write them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Struct
from demux.core.control.games_and_rounds import TaskOutcome
from demux.core.names import names_of
from demux.core.registry.protocol import SubjectVersion
from demux.core.root.layout import Layout
from demux.core.tables import BRONZE, DROPPED, GAMES, QUARANTINE, REMOVED, ROUNDS, SCHEMAS
from demux.operations.status.facts import QuarantinedRows
from demux.operations.status.reader import StatusReader
from demux.operations.status.summary import status_of
from tests.support.data.statuses import HOSTILE, NOW


def write(path: str, columns: Struct, rows: Iterable[Mapping[str, object]], **options: object) -> None:
    """Append rows; columns that a row has not are NULL."""
    fields = arrow_fields(columns)
    full = [{field.name: row.get(field.name) for field in fields} for row in rows]
    table = pa.Table.from_pylist(full, pa.schema(fields))
    write_deltalake(path, table, mode="append", **options)  # type: ignore[call-overload]


def task(game: str | None, round_id: str = "r1", **values: object) -> dict[str, object]:
    usual = {
        "outcome": "done",
        "rows_in": 3,
        "rows_silver": 3,
        "rows_quarantined": 0,
        "schema_ids": [7],
        "seconds": 0.5,
    }
    return {"round_id": round_id, "game_name": game, "finished_at": NOW, **usual, **values}


def root_of(folder: Path, *games: str) -> Layout:
    """A root with games that have 3 rows each in bronze, 2 in silver and 1 in quarantine."""
    layout = Layout(str(folder / "root"))
    write(layout.games, GAMES, [{"game_name": game, "cluster": "c", "plan_id": "p", "since": NOW} for game in games])
    write(layout.bronze, BRONZE, [{"game_name": game} for game in games for _ in range(3)], partition_by=["game_name"])
    for game in games:
        write_deltalake(layout.silver(names_of(game).key), pa.table({"a": pa.array([1, 2], pa.int32())}))
    bad = [{"stage": "silver", "cause": "MALFORMED_PAYLOAD", "game_name": game} for game in games]
    bad += [{"stage": "bronze", "cause": "INVALID_GAME_NAME", "game_name": "../etc"}]
    write(layout.quarantine, QUARANTINE, bad)
    write(layout.rounds, ROUNDS, [task(game) for game in games])
    write(layout.schemas, SCHEMAS, [{"registry": "default", "schema_id": 7, "subject": "s", "version": 2}])
    return layout


def test_all_facts_of_a_root_are_read_for_any_name(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if name.isprintable()]
    facts = StatusReader(root_of(tmp_path, *names)).read()
    assert facts.notes == ()
    assert facts.bronze is not None
    assert {game: sum(one.rows for one in came) for game, came in facts.bronze.items()} == dict.fromkeys(names, 3)
    assert {game: (one.files, one.rows) for game, one in facts.silver.items()} == dict.fromkeys(names, (1, 2))
    assert set(facts.quarantine or ()) == {
        *(QuarantinedRows("MALFORMED_PAYLOAD", name, 1) for name in names),
        QuarantinedRows("INVALID_GAME_NAME", None, 1),
    }
    assert {game: known.cluster for game, known in facts.games.items()} == dict.fromkeys(names, "c")
    assert {one.game: (one.outcome, one.rows_in, one.schema_ids) for one in facts.records} == dict.fromkeys(
        names, (TaskOutcome.DONE, 3, (7,))
    )
    assert facts.uses == {("default", 7): (SubjectVersion("s", 2),)}


def test_retired_rows_of_a_game_are_counted_and_hide_none_that_waits(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    row = {"game_name": "go", "record_id": "t/0/1"}
    write(layout.bronze, BRONZE, [{"game_name": "go"}] * 2, partition_by=["game_name"])
    write(layout.removed, REMOVED, [{"reason": "retired", **row}] * 2 + [{"reason": "forgotten", **row}])
    facts = StatusReader(layout).read()
    assert facts.retired == {"go": 2}
    # 7 came, 2 of them were retired; 2 in silver, 1 in quarantine
    assert [game.lag_rows for game in status_of(layout.root, facts, NOW).games] == [4]
    assert [game.lag_rows for game in status_of(layout.root, replace(facts, retired=None), NOW).games] == [None]


def test_dropped_rows_of_a_game_are_counted_and_wait_for_nothing(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    bad = {"cause": "MALFORMED_PAYLOAD", "game_name": "go"}
    write(layout.bronze, BRONZE, [{"game_name": "go"}] * 5, partition_by=["game_name"])
    write(layout.dropped, DROPPED, [{"stage": "silver", **bad}] * 2 + [{"stage": "bronze", **bad}])
    facts = StatusReader(layout).read()
    assert facts.dropped == {"go": 2}
    # 8 in bronze, 2 in silver, 1 in quarantine
    assert [game.lag_rows for game in status_of(layout.root, facts, NOW).games] == [3]
    assert [game.lag_rows for game in status_of(layout.root, replace(facts, dropped=None), NOW).games] == [None]


def test_a_root_that_is_not_there_is_empty_and_says_so_and_is_not_made(tmp_path: Path) -> None:
    facts = StatusReader(Layout(str(tmp_path / "nowhere"))).read()
    assert facts.notes == (f"There is no folder {tmp_path}/nowhere (yet).",)
    assert (facts.games, facts.records, facts.bronze, facts.quarantine) == ({}, (), {}, ())
    assert list(tmp_path.iterdir()) == []


def test_reading_writes_nothing(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    before = state_of(tmp_path)
    StatusReader(layout).read()
    assert state_of(tmp_path) == before


def later_ns() -> int:
    """A time at which what was just written has settled."""
    return time.time_ns() + 10**10


def test_a_silver_table_is_opened_again_only_when_it_got_a_commit(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    reader = StatusReader(layout, later_ns)
    before = reader.read()
    log = Path(layout.silver("go"), "_delta_log", "00000000000000000000.json")
    text = log.read_text(encoding="utf-8")
    log.write_text("no JSON\n", encoding="utf-8")
    assert reader.read().silver == before.silver
    log.write_text(text, encoding="utf-8")
    write_deltalake(layout.silver("go"), pa.table({"a": pa.array([3], pa.int32())}), mode="append")
    assert reader.read().silver["go"].rows == 3


def test_a_silver_table_that_changed_this_moment_is_opened_again_as_another_commit_may_have_the_same_time(
    tmp_path: Path,
) -> None:
    layout = root_of(tmp_path, "go")
    folder = Path(layout.silver("go"), "_delta_log")
    changed = folder.stat().st_mtime_ns
    reader = StatusReader(layout, lambda: changed)
    reader.read()
    write_deltalake(layout.silver("go"), pa.table({"a": pa.array([3], pa.int32())}), mode="append")
    os.utime(folder, ns=(changed, changed))
    assert reader.read().silver["go"].rows == 3


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.stat()) for path in folder.rglob("*"))
    return {str(path): (stat.st_mtime_ns, stat.st_size) for path, stat in found}


def test_what_came_since_is_in_the_next_reading(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    reader = StatusReader(layout, later_ns)
    reader.read()
    write(layout.bronze, BRONZE, [{"game_name": "go"}, {"game_name": "new"}])
    write_deltalake(layout.silver("go"), pa.table({"a": pa.array([3], pa.int32())}), mode="append")
    write(layout.rounds, ROUNDS, [task("go", "r2", outcome="failed", condition="X", sentence="Y.", schema_ids=None)])
    # a round that had nothing to do
    write(layout.rounds, ROUNDS, [{"bronze_version": 1}])
    facts = reader.read()
    assert {game: sum(one.rows for one in came) for game, came in (facts.bronze or {}).items()} == {"go": 4, "new": 1}
    assert (facts.silver["go"].files, facts.silver["go"].rows) == (2, 3)
    assert [(one.round_id, one.outcome, one.condition) for one in facts.records] == [
        ("r1", TaskOutcome.DONE, None),
        ("r2", TaskOutcome.FAILED, "X"),
    ]


def test_rows_come_in_the_order_of_time_with_the_time_of_their_file(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    began = datetime.now(timezone.utc).replace(microsecond=0)
    write(layout.bronze, BRONZE, [{"game_name": "go"}])
    came = (StatusReader(layout).read().bronze or {})["go"]
    assert [one.rows for one in came] == [3, 1]
    assert came[0].at <= came[1].at
    assert began <= came[1].at <= datetime.now(timezone.utc)


def test_a_table_made_anew_with_the_same_version_is_read_anew(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    reader = StatusReader(layout)
    reader.read()
    Path(layout.games).rename(tmp_path / "before")
    write(layout.games, GAMES, [{"game_name": "chess", "cluster": "d"}])
    assert list(reader.read().games) == ["chess"]


def test_a_table_that_asks_too_much_is_noted_and_hides_no_other(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go", "chess")
    for path in (layout.silver("go"), layout.quarantine):
        log = Path(path, "_delta_log", "00000000000000000000.json")
        log.write_text("no JSON\n", encoding="utf-8")
    facts = StatusReader(layout).read()
    assert (facts.unreadable, list(facts.silver), facts.quarantine) == (frozenset({"go"}), ["chess"], None)
    assert [path in note for path, note in zip((layout.silver("go"), layout.quarantine), facts.notes, strict=True)] == [
        True,
        True,
    ]


def test_rows_that_were_deleted_no_longer_count(tmp_path: Path) -> None:
    layout = root_of(tmp_path, "go")
    DeltaTable(layout.quarantine).delete("stage = 'silver'")
    assert StatusReader(layout).read().quarantine == (QuarantinedRows("INVALID_GAME_NAME", None, 1),)
