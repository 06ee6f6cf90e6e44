"""The ledger of tables that are written without Spark, and read without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Struct
from demux.core.errors import GameUnknown, TableUnsuited
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.tables import BRONZE, DROPPED, QUARANTINE, REMOVED, SILVER_ORIGIN
from demux.operations.reconcile.balance import Account, DifferenceExample, Ledger, LedgerFault, SourceAccount
from demux.operations.reconcile.offsets import GameOffset, SourceOffsets
from demux.operations.reconcile.reconcile import reconcile

CHECKOUT = Path(__file__).parents[5]
# what hurts in a path, a URI, a pattern, SQL or a terminal
NAMES = ("chess", "'; DROP VIEW bronze; --", "a/b", "a%20b", "a=b", "[b]*?", 'a"b', "x\ny", "🎲", "..", "NULL", "1")


@dataclass(frozen=True, slots=True)
class Tables:
    """A root with tables; a row is known by its offset in the source.

    Attributes:
        folder: the root.
    """

    folder: Path

    @property
    def layout(self) -> Layout:
        return Layout(str(self.folder))

    def source(self, *offsets: int | None, partition_by: str | None = None, **names: str) -> None:
        """Append records to the source table; `names` are its columns' own names."""
        columns = {
            "topic": pa.array(["t"] * len(offsets)),
            "partition": pa.array([0] * len(offsets), pa.int64()),
            "offset": pa.array(offsets, pa.int64()),
        }
        rows = pa.table({names.get(name, name): values for name, values in columns.items()})
        write_deltalake(self.folder / "source", rows, mode="append", partition_by=partition_by)

    def bronze(self, game: str, *offsets: int) -> None:
        """Append a batch to bronze."""
        batch = _version(self.layout.bronze) + 1
        write_deltalake(
            self.layout.bronze,
            _rows(BRONZE, [{"game_name": game, "batch_id": batch, **_position(offset)} for offset in offsets]),
            mode="append",
            partition_by="game_name",
            commit_properties=CommitProperties(app_transactions=[Transaction("w", batch)]),
        )

    def silver(self, game: str, *offsets: int) -> None:
        """Append rows to the game's table."""
        rows = [{f"_{name}": value for name, value in _position(offset).items()} for offset in offsets]
        write_deltalake(self.layout.silver(names_of(game).key), _rows(SILVER_ORIGIN, rows), mode="append")

    def append(self, table: str, columns: Struct, *offsets: int, **values: object) -> None:
        """Append rows with these values to another table."""
        rows = [{**values, **_position(offset)} for offset in offsets]
        write_deltalake(table, _rows(columns, rows), mode="append")

    def ledger(self, games: Collection[str] | None = None, version: int | None = None) -> Ledger:
        """Return the ledger where every game has read all of bronze, and bronze all of the source, or a version."""
        table = str(self.folder / "source")
        read = _version(table) if version is None else version
        bronze = SourceOffsets("w") if read < 0 else SourceOffsets("w", table, read)

        def offsets_of(keys: Collection[str]) -> Mapping[str, GameOffset]:
            return {key: GameOffset(_version(self.layout.bronze) + 1, "q") for key in keys}

        return reconcile(None, self.layout, offsets_of, lambda: bronze, games)


def _version(table: str) -> int:
    return DeltaTable(table).version() if DeltaTable.is_deltatable(table) else -1


def _position(offset: int) -> dict[str, object]:
    return {"origin": "delta", "topic": "t", "partition": 0, "offset": offset, "record_id": f"t/0/{offset}"}


def _rows(columns: Struct, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(arrow_fields(columns)))


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "root 100%")


@pytest.mark.thorough
def test_names_of_all_kinds_balance_and_each_difference_has_its_own_game(tables: Tables) -> None:
    for number, game in enumerate(NAMES):
        offsets = range(10 * number, 10 * number + 4)
        tables.source(*offsets)
        tables.bronze(game, *offsets)
        tables.silver(game, *offsets[:3])
        tables.append(tables.layout.quarantine, QUARANTINE, offsets[3], stage="silver", game_name=game)
    rows = 4 * len(NAMES)
    found = tables.ledger()
    assert (found.differences, found.notes, found.intake) == ((), (), SourceAccount(rows, 0, rows))
    assert found.accounts == tuple(Account(game, None, 4, 3, 1, 0, 0, 0) for game in sorted(NAMES))
    for game in NAMES:
        tables.silver(game, 7777)
    strays = {one.game: (one.kind, one.examples) for one in tables.ledger().differences}
    assert strays == dict.fromkeys(NAMES, (LedgerFault.STRAY, (DifferenceExample("t/0/7777", None),)))
    for game in NAMES:
        (stray,) = tables.ledger([game]).differences
        assert (stray.game, stray.kind) == (game, LedgerFault.STRAY)


def test_a_stray_of_one_game_has_its_owner_also_where_only_that_game_is_asked_for(tables: Tables) -> None:
    tables.bronze("chess", 1)
    tables.silver("go", 1)
    for games in (None, ["go"]):
        (stray,) = [one for one in tables.ledger(games).differences if one.kind is LedgerFault.STRAY]
        assert stray.examples == (DifferenceExample("t/0/1", None, "chess"),)


def test_what_went_for_good_is_counted_and_what_an_interrupted_retirement_has_left_counts_once(tables: Tables) -> None:
    tables.source(*range(6))
    tables.bronze("chess", 0, 1, 2)
    tables.silver("chess", 0, 1)
    tables.append(tables.layout.dropped, DROPPED, 2, stage="silver", game_name="chess")
    tables.append(tables.layout.dropped, DROPPED, 3, stage="bronze")
    tables.append(tables.layout.removed, REMOVED, 0, 4, reason="retired", game_name="chess", batch_id=0)
    tables.append(tables.layout.removed, REMOVED, 5, reason="forgotten", game_name="chess", batch_id=0)
    tables.silver("chess", 4)
    found = tables.ledger()
    assert found.differences == ()
    assert found.accounts == (Account("chess", None, 3, 3, 0, 0, 0, 0, 1, 1),)
    assert found.intake == SourceAccount(3, 0, 6, 1, 1, 1)


@pytest.mark.parametrize("partition_by", [None, "PARTITION"])
def test_columns_of_a_source_are_found_whatever_their_case_and_numbered_records_by_their_number(
    tables: Tables, partition_by: str | None
) -> None:
    names = {"topic": "Topic", "partition": "PARTITION", "offset": "Offset"}
    tables.source(1, 2, None, None, partition_by=partition_by, **names)
    tables.bronze("chess", 1, 2)
    missing, found = tables.ledger().differences[0], tables.ledger()
    assert (missing.kind, missing.rows, found.intake) == (LedgerFault.NOT_TAKEN_IN, 2, SourceAccount(2, 0, 4))


def test_a_column_without_bounds_is_read_like_any_other(tables: Tables) -> None:
    """Spark keeps the bounds of the first 32 columns."""
    tables.bronze("chess", 1)
    tables.append(tables.layout.quarantine, QUARANTINE, 1, stage="silver", game_name="chess")
    log = Path(tables.layout.quarantine, "_delta_log", f"{0:020}.json")
    text = log.read_text(encoding="utf-8")
    add = json.loads(next(line for line in text.splitlines() if line.startswith('{"add"')))
    add["add"]["stats"] = json.dumps({"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {"cause": 1}})
    lines = [
        json.dumps(add, separators=(",", ":")) if line.startswith('{"add"') else line for line in text.splitlines()
    ]
    log.write_text("\n".join(lines), encoding="utf-8")
    assert tables.ledger().accounts == (Account("chess", None, 1, 0, 1, 0, 0, 0),)


def test_files_that_deltalake_has_written_anew_are_searched_too(tables: Tables) -> None:
    """They hold string views, whose bounds Arrow compares with no other text."""
    tables.bronze("chess", 1, 2, 3)
    tables.silver("go", 1, 2)
    for stage in ("bronze", "silver"):
        tables.append(tables.layout.quarantine, QUARANTINE, *range(8), stage=stage, game_name="chess")
    DeltaTable(tables.layout.quarantine).optimize.compact()
    for table, column in (("bronze", "record_id"), ("quarantine", "record_id"), ("silver/go", "_record_id")):
        DeltaTable(f"{tables.folder}/{table}").delete(f"{column} = 't/0/3'")
    for games, strays in ((None, {"go": 2, "chess": 5}), (["go"], {"go": 2}), (["chess"], {"chess": 5})):
        found = tables.ledger(games).differences
        assert {one.game: one.rows for one in found if one.kind is LedgerFault.STRAY} == strays


def test_a_version_of_the_source_that_is_gone_is_said(tables: Tables) -> None:
    tables.source(1)
    tables.source(2)
    tables.bronze("chess", 1)
    first = tables.folder / "source" / "_delta_log" / f"{0:020}.json"
    DeltaTable(tables.folder / "source").create_checkpoint()
    assert tables.ledger(version=0).notes == ()
    first.unlink()
    said = "The source was not compared: version 0 of it cannot be read."
    assert (tables.ledger(version=0).notes, tables.ledger(version=0).intake) == ((said,), SourceAccount(1, 0, None))
    for file in (tables.folder / "source").glob("*.parquet"):
        file.unlink()
    assert tables.ledger().notes == (said.replace("0", "1"),)


def test_a_table_that_cannot_be_read_is_named_with_what_reads_it(tables: Tables) -> None:
    tables.silver("chess", 1)
    path = tables.layout.silver("chess")
    log = Path(path, "_delta_log", f"{0:020}.json")
    text = log.read_text(encoding="utf-8")
    old = next(line for line in text.splitlines() if line.startswith('{"protocol"'))
    text = text.replace(old, '{"protocol":{"minReaderVersion":2,"minWriterVersion":5}}')
    mapped = text.replace('"configuration":{', '"configuration":{"delta.columnMapping.mode":"name",').replace(
        '",}', '"}'
    )
    log.write_text(mapped, encoding="utf-8")
    with pytest.raises(TableUnsuited) as caught:
        tables.ledger()
    assert f"Only Spark reads the table {path}: " in caught.value.message
    assert caught.value.remedy == "Run the same command with --spark."


def test_an_unknown_game_is_said_and_a_root_without_tables_balances(tables: Tables) -> None:
    assert tables.ledger() == Ledger(SourceAccount(0, 0, None), (), (), (), ())
    with pytest.raises(GameUnknown):
        tables.ledger(["chess"])


@pytest.mark.thorough
def test_the_command_starts_no_process_and_so_no_java(tables: Tables) -> None:
    tables.bronze("chess", 1, 2)
    refuse = """
import sys

def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "os.system"):
        raise RuntimeError(f"a process: {arguments}")

sys.addaudithook(refuse)
from demux.cli import main
main()
"""
    words = [sys.executable, "-c", refuse, "reconcile", "--root", str(tables.folder)]
    environ = {**os.environ, "PYTHONPATH": str(CHECKOUT)}

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words, *options], env=environ, capture_output=True, text=True, timeout=120, check=False)

    ended = run()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "balances: every record is in exactly one place"
    assert sorted(path.name for path in tables.folder.iterdir()) == ["bronze"]
    assert "a process: " in run("--spark").stderr
