"""The ledger: it balances whatever was interrupted, and names what somebody changed by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import demux.operations.reconcile.consistent_snapshot
from bronze_ingest.rebuild import rebuild_bronze
from demux import api
from demux.core.causes import Cause
from demux.core.errors import GameUnknown, TableUnsuited, TaskFailed
from demux.core.settings.settings import Engine
from demux.operations.quarantine.filter import QuarantineFilter
from demux.operations.reconcile.balance import DifferenceExample, Grain, Ledger, LedgerFault, SourceAccount
from demux.operations.reconcile.offsets import GameOffset
from demux.operations.reconcile.reconcile import reconcile
from demux.pipeline.read_offsets import game_offsets, source_offsets
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.replay import replay
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.spark_table import SilverBySpark
from tests.support.flow.crash import Crash, after_committing
from tests.support.flow.fleet import FLEET, STREAM, crash_after, without_errors
from tests.support.flow.process import Command
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]
Found = dict[tuple[str, str | None], int]

EVENT = 'syntax = "proto3"; message Event { string name = 1; }'
UNKNOWN = QuarantineFilter(causes=(Cause.UNKNOWN_SCHEMA,))


def run(root: Root) -> None:
    """One round by the engine of the settings, without a failure."""
    without_errors(root.run())


def ledger(root: Root, *games: str, grain: Grain = Grain.GAME) -> Ledger:
    return api.Root(root.settings).reconcile(list(games) or None, grain)


def wrong(found: Ledger) -> Found:
    return {(one.kind.value, one.game): one.rows for one in found.differences}


def require_balance(root: Root) -> Ledger:
    found = ledger(root)
    assert (wrong(found), found.notes) == ({}, ())
    assert found.intake is not None
    assert found.intake.source == len(root.source()) == found.intake.bronze + found.intake.quarantined
    assert [(one.game, one.bronze, one.silver, one.quarantined) for one in found.accounts] == [
        (
            game,
            sum(row["game_name"] == game for row in root.bronze()),
            len(root.silver(game)),
            sum(row["game_name"] == game and row["stage"] == "silver" for row in root.quarantine()),
        )
        for game in sorted({row["game_name"] for row in root.bronze()})
    ]
    return found


def remove(table: str | Path, condition: str | None = None) -> None:
    DeltaTable(table).delete(condition)


def append_again(table: str | Path, column: str, record_id: str, into: str | Path | None = None) -> None:
    """Append a row that a table has; into another table, in that one's columns."""
    rows = DeltaTable(table).to_pyarrow_table()
    (position,) = [at for at, one in enumerate(rows.column(column).to_pylist()) if one == record_id]
    row = rows.slice(position, 1)
    if into is not None:
        fields = DeltaTable(into).to_pyarrow_table().schema
        arrays = [row.column(one.name) if one.name.startswith("_") else pa.nulls(1, one.type) for one in fields]
        row = pa.Table.from_arrays(arrays, schema=fields)
    write_deltalake(into or table, row, mode="append")


@pytest.fixture(
    scope="module", params=[pytest.param(STREAM, id="stream", marks=pytest.mark.long), pytest.param(FLEET, id="fleet")]
)
def decoded(request: pytest.FixtureRequest, taken_in: Root, tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Two games in two rounds with every fault, by each engine. To be copied, not changed."""
    root = taken_in.copied_to(tmp_path_factory.mktemp("decoded") / "root", run=request.param)
    run(root)
    root.produce(events=60, games=2, versions=2, fault_rate=0.3)
    run(root)
    return root


def copied(root: Root, folder: Path) -> Root:
    return root.copied_to(folder / "root", run={"engine": root.settings.run.engine.value})


def test_what_two_rounds_with_every_fault_have_left_balances(decoded: Root) -> None:
    found = require_balance(decoded)
    assert [one.waiting for one in found.accounts] == [0, 0]
    rounds = ledger(decoded, "chess", grain=Grain.ROUND).accounts
    assert [(one.batch, one.bronze) for one in rounds] == [
        (batch, sum(row["game_name"] == "chess" and row["batch_id"] == batch for row in decoded.bronze()))
        for batch in (0, 1)
    ]


def test_every_change_by_hand_is_named_with_its_game_its_batch_and_its_position(decoded: Root, tmp_path: Path) -> None:
    root = copied(decoded, tmp_path)
    batches = {row["record_id"]: row["batch_id"] for row in root.bronze()}
    chess, go = ([row["_record_id"] for row in root.silver(game)] for game in ("chess", "go"))
    bad = [row["record_id"] for row in root.quarantine() if row["stage"] == "silver" and row["game_name"] == "go"]
    remove(root.silver_path("chess"), f"_record_id = '{chess[3]}'")
    append_again(root.silver_path("chess"), "_record_id", chess[5])
    append_again(root.silver_path("chess"), "_record_id", chess[7], into=root.silver_path("go"))
    append_again(root.layout.quarantine, "record_id", bad[0])
    remove(root.layout.quarantine, f"record_id = '{bad[1]}'")
    found = ledger(root)
    assert {(one.kind, one.game): (one.rows, one.examples) for one in found.differences} == {
        (LedgerFault.LOST, "chess"): (1, (DifferenceExample(chess[3], batches[chess[3]]),)),
        (LedgerFault.LOST, "go"): (1, (DifferenceExample(bad[1], batches[bad[1]]),)),
        (LedgerFault.DOUBLED, "chess"): (1, (DifferenceExample(chess[5], batches[chess[5]]),)),
        (LedgerFault.DOUBLED, "go"): (1, (DifferenceExample(bad[0], batches[bad[0]]),)),
        (LedgerFault.STRAY, "go"): (1, (DifferenceExample(chess[7], None, "chess"),)),
    }
    assert wrong(ledger(root, "chess")) == {("lost", "chess"): 1, ("doubled", "chess"): 1}
    assert go == [row["_record_id"] for row in root.silver("go") if row["_record_id"] != chess[7]]


def test_a_truncated_table_is_found_and_so_is_one_that_is_gone(decoded: Root, tmp_path: Path) -> None:
    root = copied(decoded, tmp_path)
    lost = {game: len(root.silver(game)) for game in ("chess", "go")}
    remove(root.silver_path("chess"))
    found = ledger(root)
    assert wrong(found) == {("lost", "chess"): lost["chess"]}
    assert len(found.differences[0].examples) == 20
    assert (found.differences[0].first_batch, found.differences[0].last_batch) == (0, 1)
    # the fleet's place is in the table itself: without it, the fleet decodes all of the game again
    shutil.rmtree(root.silver_path("go"))
    found = ledger(root, "go")
    is_stream = root.settings.run.engine is Engine.STREAM
    assert wrong(found) == ({("lost", "go"): lost["go"]} if is_stream else {})
    assert [one.waiting for one in found.accounts] == [0 if is_stream else lost["go"]]


def test_changes_of_bronze_by_hand_are_found_on_both_sides(decoded: Root, tmp_path: Path) -> None:
    root = copied(decoded, tmp_path)
    chess = [row["_record_id"] for row in root.silver("chess")]
    refused = [row["record_id"] for row in root.quarantine() if row["stage"] == "bronze"]
    remove(root.layout.bronze, f"record_id = '{chess[3]}'")
    append_again(root.layout.bronze, "record_id", chess[5])
    remove(root.layout.quarantine, f"record_id = '{refused[0]}'")
    found = ledger(root)
    assert wrong(found) == {
        ("not taken in", None): 2,
        ("taken twice", "chess"): 1,
        ("lost", "chess"): 1,
        ("stray", "chess"): 1,
    }
    (missing,) = [one for one in found.differences if one.kind is LedgerFault.NOT_TAKEN_IN]
    assert {one.record_id for one in missing.examples} == {chess[3], refused[0]}


def test_a_lost_row_is_still_found_after_the_tables_were_compacted_and_vacuumed(decoded: Root, tmp_path: Path) -> None:
    root = copied(decoded, tmp_path)
    gone = root.silver("chess")[3]["_record_id"]
    for table in (root.silver_path("chess"), root.silver_path("go"), root.layout.quarantine):
        compact(table)
    require_balance(root)
    remove(root.silver_path("chess"), f"_record_id = '{gone}'")
    assert wrong(ledger(root)) == {("lost", "chess"): 1}


@pytest.mark.parametrize(
    ("properties", "version"),
    [
        # Delta 2.4 on Spark 3.4 cannot delete rows of such a table
        pytest.param("'delta.enableDeletionVectors' = 'true'", 3, id="deletion-vectors"),
        pytest.param(
            "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'",
            2,
            id="column-mapping",
            marks=pytest.mark.both_lanes,
        ),
    ],
)
def test_tables_that_only_spark_reads_are_counted_by_spark_and_refused_without_it(
    done: Root, copy: Copy, properties: str, version: int
) -> None:
    root = copy(done)
    gone, stray = (row["_record_id"] for row in root.silver("chess")[:2])
    append_again(root.silver_path("chess"), "_record_id", stray, into=root.silver_path("go"))
    for table in (root.silver_path("chess"), root.layout.bronze, root.layout.quarantine):
        root.spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({properties})")
        assert DeltaTable(table).protocol().min_reader_version == version
    root.spark.sql(f"DELETE FROM delta.`{root.silver_path('chess')}` WHERE _record_id = '{gone}'")
    for games, expected in ((None, {("lost", "chess"): 1, ("stray", "go"): 1}), (["go"], {("stray", "go"): 1})):
        found = api.Root(root.settings).reconcile(games, spark=root.spark)
        assert wrong(found) == expected
        assert found.differences[-1].examples == (DifferenceExample(stray, None, "chess"),)
    with pytest.raises(TableUnsuited) as caught:
        ledger(root)
    assert root.layout.quarantine in caught.value.message
    assert caught.value.remedy == "Run the same command with --spark."


def compact(table: str) -> None:
    opened = DeltaTable(table)
    opened.optimize.compact()
    opened.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def test_rows_that_wait_balance_and_so_do_those_of_an_interrupted_batch(
    taken_in: Root, copy: Copy, tmp_path: Path
) -> None:
    root = copy(taken_in, run=STREAM)
    assert [(one.waiting, one.bronze) for one in require_balance(root).accounts] == [
        (sum(row["game_name"] == game for row in root.bronze()),) * 2 for game in ("chess", "go")
    ]
    with crash_after(SilverBySpark, "append_rows", Crash), pytest.raises(TaskFailed):
        root.workplace().deserialize("chess")
    found = ledger(root)
    assert wrong(found) == {}
    assert {one.game: one.silver for one in found.accounts} == {"chess": len(root.silver("chess")), "go": 0}
    run(root)
    assert [one.waiting for one in require_balance(root).accounts] == [0, 0]


def test_a_batch_of_bronze_that_was_interrupted_balances(sent: Root, copy: Copy) -> None:
    root = copy(sent)
    with after_committing(root.layout.bronze), pytest.raises(TaskFailed):
        root.workplace().ingest()
    assert root.bronze() != []
    assert wrong(ledger(root)) == {}
    run(root)
    require_balance(root)


def test_a_round_of_the_fleet_that_was_interrupted_balances(taken_in: Root, copy: Copy) -> None:
    root = copy(taken_in, run={"engine": "fleet"})
    with pytest.MonkeyPatch.context() as patch:
        append = Quarantine.append

        def then_crash(self: Quarantine, *args: Any) -> None:
            append(self, *args)
            raise KeyboardInterrupt

        patch.setattr(Quarantine, "append", then_crash)
        with pytest.raises(KeyboardInterrupt):
            run(root)
    assert any(row["stage"] == "silver" for row in root.quarantine())
    assert wrong(ledger(root)) == {}
    run(root)
    require_balance(root)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(STREAM, id="stream", marks=pytest.mark.long),
        pytest.param(FLEET, id="fleet", marks=pytest.mark.both_lanes),
    ],
)
def test_a_replay_and_a_rebuild_balance_and_so_does_what_runs_while_the_tables_are_read(
    root: Root, settings: Mapping[str, object]
) -> None:
    root = Root.at(root.spark, root.folder, run=settings)
    known = root.register("chess", EVENT)
    payload = root.message(known)(name="ann").SerializeToString()
    root.send([wrapper("chess", known + number % 3, payload) for number in range(6)])
    run(root)
    assert [(one.silver, one.quarantined) for one in require_balance(root).accounts] == [(2, 4)]

    def appears_and_is_replayed(number: int) -> None:
        assert root.register("chess", f"{EVENT} // {number}") == known + number
        schemas = root.workplace().schemas
        assert replay(root.spark, root.layout, schemas, "chess", UNKNOWN).decoded == 2

    def another_round() -> None:
        root.send([wrapper("chess", known, payload)] * 4, first_offset=6)
        run(root)

    def decoded_once_more() -> None:
        rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas), "chess")

    with around("silver_snapshots", before=lambda: appears_and_is_replayed(1)):
        assert wrong(ledger(root)) == {}
    with around("silver_snapshots", before=another_round, after=lambda: appears_and_is_replayed(2)):
        assert wrong(ledger(root)) == {}
    with around("silver_snapshots", before=decoded_once_more):
        assert wrong(ledger(root)) == {}
    with around("silver_snapshots", after=decoded_once_more):
        assert wrong(ledger(root)) == {}
    with around("silver_snapshots", after=lambda: rebuild_bronze(root.spark, root.settings)):
        assert wrong(ledger(root)) == {}
    run(root)
    assert [(one.silver, one.quarantined) for one in require_balance(root).accounts] == [(10, 0)]


def nothing() -> None:
    """Nothing happens."""


@contextmanager
def around(
    function: str, before: Callable[[], object] = nothing, after: Callable[[], object] = nothing
) -> Iterator[None]:
    """Have something happen, once, just before and after a step of the reading."""
    original = getattr(demux.operations.reconcile.consistent_snapshot, function)
    steps = [after, before]

    def with_steps(*args: object) -> object:
        if steps:
            steps.pop()()
        found = original(*args)
        if steps:
            steps.pop()()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demux.operations.reconcile.consistent_snapshot, function, with_steps)
        yield


def test_a_lost_row_is_found_where_the_checkpoint_is_gone(streamed: Root, copy: Copy) -> None:
    root = copy(streamed)
    shutil.rmtree(root.folder / "checkpoints" / "silver" / "chess")
    remove(root.silver_path("chess"), f"_record_id = '{root.silver('chess')[0]['_record_id']}'")
    assert wrong(ledger(root)) == {("lost", "chess"): 1}


def test_where_a_position_is_gone_nothing_is_called_lost_and_the_ledger_says_so(streamed: Root, copy: Copy) -> None:
    root = copy(streamed)
    table = DeltaTable(root.silver_path("chess")).to_pyarrow_table()
    shutil.rmtree(root.silver_path("chess"))
    write_deltalake(root.silver_path("chess"), table)
    remove(root.silver_path("chess"), f"_record_id = '{root.silver('chess')[0]['_record_id']}'")
    found = ledger(root)
    assert wrong(found) == {}
    (note,) = found.notes
    assert note.startswith("The offset of chess is unknown")
    assert [one.waiting for one in found.accounts] == [1, 0]


def test_records_without_a_position_are_compared_by_their_number(root: Root) -> None:
    known = root.register("chess", EVENT)
    payload = root.message(known)(name="ann").SerializeToString()
    root.send([wrapper("chess", known, payload)] * 5, first_offset=None)
    run(root)
    assert (wrong(ledger(root)), ledger(root).intake) == ({}, SourceAccount(5, 0, 5))
    gone = root.bronze()[2]["record_id"]
    remove(root.layout.bronze, f"record_id = '{gone}'")
    remove(root.silver_path("chess"), f"_record_id = '{gone}'")
    found = ledger(root)
    assert wrong(found) == {("not taken in", None): 1}
    assert found.intake == SourceAccount(4, 0, 5)


def test_a_source_that_holds_a_record_twice_balances_and_half_of_it_does_not(root: Root) -> None:
    known = root.register("chess", EVENT)
    payload = root.message(known)(name="ann").SerializeToString()
    for _ in range(2):
        root.send([wrapper("chess", known, payload)] * 3)
        run(root)
    require_balance(root)
    silver = DeltaTable(root.silver_path("chess")).to_pyarrow_table()
    write_deltalake(root.silver_path("chess"), silver.slice(0, 5), mode="overwrite")
    assert wrong(ledger(root)) == {("lost", "chess"): 1}


def test_the_position_comes_from_whoever_is_asked(done: Root) -> None:
    """The ledger knows no engine: it takes the word of a function for where games stand."""

    def never(keys: Collection[str]) -> Mapping[str, GameOffset]:
        return {}

    source = source_offsets(None, done.settings)
    assert reconcile(None, done.layout, never, source).balances
    assert set(game_offsets(None, done.layout)(["chess", "go", "none"])) == {"chess", "go"}


def test_the_command_tells_what_does_not_balance_by_its_exit_code(done: Root, copy: Copy, command: Command) -> None:
    root = copy(done)
    where = ("--root", str(root.folder))
    said = command("reconcile", *where)
    assert (said.code, said.err) == (0, "")
    bronze = len(root.bronze())
    refused = sum(row["stage"] == "bronze" for row in root.quarantine())
    lines = said.out.splitlines()
    assert lines[0] == (
        f"{len(root.source())} records in the source before bronze's offset; "
        f"{bronze} in bronze, {refused} in quarantine at stage bronze"
    )
    assert lines[-1] == "balances: every record is in exactly one place"

    gone = root.silver("chess")[0]["_record_id"]
    remove(root.silver_path("chess"), f"_record_id = '{gone}'")
    said = command("reconcile", *where)
    assert said.code == 6
    assert (
        "lost: chess: 1 row of batch 0: in bronze before the game's offset, and neither in silver nor in "
        "quarantine\n"
        f"    {gone} (batch 0)\n"
        "does not balance: 1 row too many or not there\n"
    ) in said.out
    said = command("reconcile", "--json", "--game", "chess", *where)
    document = json.loads(said.out)
    assert (said.code, document["balances"], document["source"]) == (6, False, None)
    assert [(one["kind"], one["game"], one["examples"]) for one in document["differences"]] == [
        ("lost", "chess", [{"record_id": gone, "batch": 0, "owner": None}])
    ]
    assert command("reconcile", "--game", "go", *where).code == 0
    said = command("reconcile", "--game", "Chess", *where)
    assert (said.code, said.err.split("\n")[0]) == (2, "GAME_UNKNOWN No table has records of 'Chess'.")


def test_a_root_without_anything_balances_and_an_unknown_game_is_said(root: Root) -> None:
    assert ledger(root).balances
    with pytest.raises(GameUnknown):
        ledger(root, "chess")
