"""Maintenance: rows stay as they are, whatever waits or dies meanwhile; old rows leave bronze, and stay on record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

import demux.operations.maintenance.retention
import demux.operations.maintenance.run
from demux import api
from demux.cli.repair.maintain import maintain_if_due
from demux.core.errors import ExitCode
from demux.core.settings.maintenance import MaintainSettings
from demux.operations.maintenance.report import TableKind, TableMaintenance, Vacuum
from demux.operations.maintenance.run import MaintenanceRequest, TableMaintainer, tables_of
from demux.operations.maintenance.state import MaintenanceState, next_due, read_state, write_state
from demux.operations.reconcile.balance import Ledger
from demux.pipeline.read_offsets import game_offsets
from tests.support.flow import crash
from tests.support.flow.fleet import FLEET, STREAM, without_errors
from tests.support.flow.process import Command
from tests.support.flow.root import Root, rows

Copy = Callable[..., Root]
# everything that the fixtures have taken in is older then
LATER = datetime.now(timezone.utc) + timedelta(days=3)
OLD: dict[str, Any] = {"keep": "0s", "bronze_days": 1}


def maintain(
    root: Root, now: datetime = LATER, new_id: str = "a", **settings: Any
) -> tuple[list[TableMaintenance], TableMaintainer]:
    """Maintain all tables by these settings; nothing may fail."""
    known = MaintainSettings(**settings)
    place = root.workplace()
    request = MaintenanceRequest(known, Vacuum.YES, False, now, new_id, threads=2)
    offsets_of = game_offsets(root.spark, root.layout)
    upkeep = TableMaintainer(root.spark, root.layout, request, offsets_of, lambda: None, place.stop)
    done = list(upkeep.run(tables_of(root.layout, known, {}, ())))
    assert [str(one.error) for one in done if one.error is not None] == []
    return done, upkeep


def forecast(root: Root, spark: SparkSession | None) -> int:
    """How many rows of bronze are to be retired, as a look says, by Spark or without it."""
    known = MaintainSettings(**OLD)
    request = MaintenanceRequest(known, Vacuum.YES, True, LATER, "look", threads=2)
    upkeep = TableMaintainer(spark, root.layout, request, game_offsets(spark, root.layout), lambda: None, Event())
    found = list(upkeep.run(tables_of(root.layout, known, {}, ())))
    assert [str(one.error) for one in found if one.error is not None] == []
    return sum(one.rows for one in found if one.table.kind is TableKind.BRONZE)


def data_files(table: str) -> set[str]:
    return {file.name for file in Path(table).rglob("*.parquet") if "_delta_log" not in file.parts}


def balanced(root: Root) -> Ledger:
    ledger = api.Root(root.settings).reconcile()
    assert (ledger.differences, ledger.notes) == ((), ())
    assert ledger.intake is not None
    assert ledger.intake.source == len(root.source())
    return ledger


def removed(root: Root) -> list[tuple[str, str, str]]:
    return sorted((row["game_name"], row["record_id"], row["reason"]) for row in rows(root.layout.removed))


def still_quarantined(root: Root) -> set[str]:
    """Which records are in quarantine, and in bronze."""
    return {row["record_id"] for row in root.quarantine() if row["stage"] == "silver"}


@contextmanager
def after_notes(number: int) -> Iterator[None]:
    """Die when what is known of maintenance was written down so often."""
    notes = 0

    def note_and_die(*args: Any) -> None:
        nonlocal notes
        write_state(*args)
        notes += 1
        if notes == number:
            raise crash.Death

    with pytest.MonkeyPatch.context() as patch:
        for module in (demux.operations.maintenance.run, demux.operations.maintenance.retention):
            patch.setattr(module, "write_state", note_and_die)
        yield


def retired(ledger: Ledger) -> int:
    return sum(account.retired for account in ledger.accounts)


@pytest.mark.parametrize(
    "engine", [pytest.param(STREAM, id="stream", marks=pytest.mark.oldest), pytest.param(FLEET, id="fleet")]
)
def test_rows_that_wait_are_read_after_files_were_joined_and_removed_and_older_rows_retired(
    streamed: Root, copy: Copy, engine: dict[str, Any]
) -> None:
    root = copy(streamed, run=engine)
    without_errors(root.run())
    place = root.workplace()
    for _ in range(4):
        root.produce(events=20, games=2, versions=2)
        place.ingest()
    read, before, tables = data_files(streamed.layout.bronze), data_files(root.layout.bronze), root.everything()
    found, upkeep = maintain(root, keep="0s")
    (bronze,) = (one for one in found if one.table.kind is TableKind.BRONZE)
    # the old files of what was read are gone, those of what waits stay beside what they were joined to
    assert (bronze.files_before, bronze.files_after) == (len(before), 2)
    now = data_files(root.layout.bronze)
    assert (now & read, before - read <= now) == (set(), True)
    assert sorted(one.game for one in upkeep.held_back) == ["chess", "go"]
    assert sum(one.files or 0 for one in upkeep.held_back) == len(before - read)
    assert root.everything() == tables

    # what was read leaves bronze, though it is in one file with what waits
    first = {row["record_id"] for row in streamed.bronze()}
    waits = {row["record_id"] for row in root.bronze()} - first
    assert forecast(root, None) == forecast(root, root.spark) == len(first - still_quarantined(streamed)) > 0
    maintain(root, **OLD)
    assert {row["record_id"] for row in root.bronze()} - first == waits
    gone = {record for _, record, _ in removed(root)}
    assert gone == first - still_quarantined(streamed)
    ledger = balanced(root)
    assert (retired(ledger), sum(account.waiting for account in ledger.accounts)) == (len(gone), len(waits))

    root.produce(events=20, games=2, versions=2)
    without_errors(root.run())
    ledger = balanced(root)
    assert (retired(ledger), sum(account.waiting for account in ledger.accounts)) == (len(gone), 0)
    _, upkeep = maintain(root, new_id="b", **OLD)
    assert upkeep.held_back == []
    root.produce(events=20, games=2, versions=2)
    without_errors(root.run())
    balanced(root)


def test_old_rows_leave_bronze_once_wherever_that_dies_and_the_ledger_balances_all_the_time(
    done: Root, copy: Copy
) -> None:
    root, kept = copy(done), still_quarantined(done)
    going = sorted(
        (row["game_name"], row["record_id"], "retired") for row in done.bronze() if row["record_id"] not in kept
    )
    # each goes on where the one before died
    deaths = {
        "begun": (after_notes(1), 0),
        "written down": (crash.after_writes(1, crash.Death), 0),
        "gone": (crash.after_writes(1, crash.Death), len(going)),
        "ended": (after_notes(1), len(going)),
    }
    for name, (death, expected) in deaths.items():
        with death, pytest.raises(crash.Death):
            maintain(root, new_id=name, **OLD)
        assert retired(balanced(root)) == expected, name
    maintain(root, new_id="last", **OLD)
    assert (removed(root), retired(balanced(root))) == (going, len(going))
    assert {row["request"] for row in rows(root.layout.removed)} == {"written down"}
    assert {row["record_id"] for row in root.bronze()} == kept
    for table in ("quarantine", "silver/chess", "silver/go"):
        assert root.everything()[table] == done.everything()[table]


def test_rows_that_have_to_be_read_again_before_they_are_gone_stay(streamed: Root, copy: Copy) -> None:
    root = copy(streamed)
    with crash.after_writes(1, crash.Death), pytest.raises(crash.Death):
        maintain(root, **OLD)
    # as a rebuild that was killed leaves it: whoever reads next begins anew
    for part in Path(root.layout.silver_checkpoint("chess")), Path(root.silver_path("chess")):
        part.rename(part.with_name("elsewhere"))
    maintain(root, new_id="b", **OLD)
    assert {game for game, _, _ in removed(root)} == {"go"}
    assert sum(row["game_name"] == "chess" for row in root.bronze()) == sum(
        row["game_name"] == "chess" for row in streamed.bronze()
    )


def test_a_run_maintains_what_is_due_a_plan_says_when_and_the_command_says_what_it_does(
    done: Root, copy: Copy, command: Command
) -> None:
    root = copy(done)
    where = ("--root", str(root.folder))
    place = root.workplace()
    assert read_state(root.layout).since is None
    maintain_if_due(place)
    due = next_due(read_state(root.layout).since, root.settings.maintain.interval)
    assert due is not None
    assert not read_state(root.layout).finished
    assert command("plan", *where).out.splitlines()[-1].startswith(f"Maintenance: due at {due:%Y-%m-%d %H:%M} UTC")

    before = {path for path in root.folder.rglob("*") if "logs" not in path.parts}
    said = command("maintain", "--dry-run", "--set", "maintain.keep=0s", *where)
    assert (said.code, said.out.splitlines()[-1]) == (0, "nothing was changed")
    assert {path for path in root.folder.rglob("*") if "logs" not in path.parts} == before
    heads = [line.split()[0] for line in said.out.splitlines() if line.startswith(" ") and line.strip()]
    assert heads[-4:] == ["bronze", "silver", "quarantine", "control"]
    assert command("maintain", "--game", "chess", *where).code == 0
    assert not read_state(root.layout).finished

    write_state(root.layout, MaintenanceState(since=datetime.now(timezone.utc) - timedelta(days=2)))
    assert command("run", *where).code == 0
    assert read_state(root.layout).finished
    balanced(root)
    # a table that nobody can read stops no other
    broken = root.folder / "control" / "broken" / "_delta_log"
    broken.mkdir(parents=True)
    (broken / f"{0:020}.json").write_text("{")
    said = command("maintain", *where)
    assert said.code == ExitCode.GAMES_FAILED
    assert [line.partition(": [")[0] for line in said.out.splitlines()][-1] == "failed: control/broken"
    assert [line.split()[:2] for line in said.out.splitlines() if line.startswith(" silver")] == [["silver", "2"]]
    for words, sentence in (
        (("--game", "ches"), "GAME_UNKNOWN Bronze has no rows of a game ches."),
        (
            ("--set", "maintain.keep=59m"),
            "SETTINGS_INVALID maintain.keep is 3540 seconds, and readers may still be at files of a moment ago.",
        ),
    ):
        refused = command("maintain", *words, *where)
        assert (refused.code, refused.err.splitlines()[0]) == (2, sentence)
