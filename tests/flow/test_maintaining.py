"""Maintenance: rows stay as they are, whatever waits or dies meanwhile; old rows leave bronze, and stay on record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import demux.upkeep.state
from demux.cli.maintain import maintain_if_due, next_maintenance
from demux.cli.positions import stands_of
from demux.cli.reconcile import ledger_of
from demux.ledger.account import Ledger
from demux.settings_maintain import MaintainSettings
from demux.upkeep.report import Done, HeldBack, Kind, Vacuum
from demux.upkeep.run import Request, Upkeep
from demux.upkeep.state import State, read_state, write_state
from demux.upkeep.tables import tables_of
from tests.flow import crash
from tests.flow.fleet import FLEET, without_errors
from tests.flow.fleet import run as round_of
from tests.flow.process import Command
from tests.flow.root import Root, rows

Copy = Callable[..., Root]
STREAM = {"engine": "stream", "retry_wait_s": 0.0}
# everything that the fixtures have taken in is older then
LATER = datetime.now(timezone.utc) + timedelta(days=3)
OLD = {"keep": "0s", "bronze_days": 1}


def maintain(root: Root, now: datetime = LATER, new_id: str = "a", **settings: Any) -> tuple[list[Done], Upkeep]:
    """Maintain all tables by these settings; nothing may fail."""
    known = MaintainSettings(**settings)
    place = root.workplace()
    request = Request(known, Vacuum.YES, False, now, new_id, threads=2)
    stands = stands_of(root.spark, root.layout)
    upkeep = Upkeep(root.spark, root.layout, request, stands, lambda: None, place.stop)
    done = list(upkeep.run(tables_of(root.spark, root.layout, known, {}, ())))
    assert [str(one.error) for one in done if one.error is not None] == []
    return done, upkeep


def data_files(table: str) -> set[str]:
    return {file.name for file in Path(table).rglob("*.parquet") if "_delta_log" not in file.parts}


def balanced(root: Root) -> Ledger:
    ledger = ledger_of(root.workplace())
    assert (ledger.differences, ledger.notes) == ((), ())
    assert ledger.intake is not None
    assert ledger.intake.source == len(root.source())
    return ledger


def removed(root: Root) -> list[tuple[str, str, str]]:
    return sorted((row["game_name"], row["record_id"], row["reason"]) for row in rows(root.layout.removed))


def retired(ledger: Ledger) -> int:
    return sum(account.retired for account in ledger.accounts)


@pytest.mark.parametrize("engine", [STREAM, FLEET], ids=["stream", "fleet"])
def test_rows_that_wait_are_read_after_their_files_were_joined_and_old_ones_removed(
    done: Root, copy: Copy, tmp_path: Path, engine: dict[str, Any]
) -> None:
    root, undisturbed = copy(done, run=engine), done.copied_to(tmp_path / "undisturbed", run=engine)
    for each in (root, undisturbed):
        without_errors(round_of(each))
        place = each.workplace()
        for _ in range(4):
            each.produce(events=20, games=2, versions=2)
            place.ingest()
    read, before = data_files(done.layout.bronze), data_files(root.layout.bronze)
    found, upkeep = maintain(root, keep="0s")
    (bronze,) = (one for one in found if one.table.kind is Kind.BRONZE)
    # the old files of what was read are gone, those of what waits stay beside what they were joined to
    assert (bronze.files_before, bronze.files_after) == (len(before), 2)
    now = data_files(root.layout.bronze)
    assert (now & read, before - read <= now) == (set(), True)
    assert sorted(one.game for one in upkeep.held_back) == ["chess", "go"]
    assert sum(one.files for one in upkeep.held_back) == len(before - read)
    assert root.everything() == undisturbed.everything()
    balanced(root)
    for each in (root, undisturbed):
        without_errors(round_of(each))
    assert root.everything() == undisturbed.everything()
    balanced(root)

    _, upkeep = maintain(root, keep="0s")
    assert (upkeep.held_back, len(data_files(root.layout.bronze))) == ([], 2)
    for each in (root, undisturbed):
        each.produce(events=20, games=2, versions=2)
        without_errors(round_of(each))
    assert root.everything() == undisturbed.everything()
    balanced(root)


@pytest.mark.parametrize("writes", [1, 2, 3, 4], ids=["begun", "written down", "gone", "ended"])
def test_old_rows_leave_bronze_once_wherever_that_dies_and_the_ledger_balances_all_the_time(
    done: Root, copy: Copy, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(done)
    kept = {row["record_id"] for row in done.quarantine() if row["stage"] == "silver"}
    going = sorted(
        (row["game_name"], row["record_id"], "retired") for row in done.bronze() if row["record_id"] not in kept
    )
    if writes in {2, 3}:
        with crash.after_writes(writes - 1), pytest.raises(AssertionError, match="Crash"):
            maintain(root, **OLD)
    else:
        notes = 0

        def note_and_crash(*args: Any) -> None:
            nonlocal notes
            write_state(*args)
            notes += 1
            if notes == (1 if writes == 1 else 2):
                raise crash.Crash

        with monkeypatch.context() as patch:
            for module in (demux.upkeep.run, demux.upkeep.retiring):
                patch.setattr(module, "write_state", note_and_crash)
            with pytest.raises(AssertionError, match="Crash"):
                maintain(root, **OLD)
    ledger = balanced(root)
    assert retired(ledger) == (0 if writes < 3 else len(going))

    maintain(root, new_id="b", **OLD)
    ledger = balanced(root)
    assert (removed(root), retired(ledger)) == (going, len(going))
    assert {row["record_id"] for row in root.bronze()} == kept
    for table in ("quarantine", *(f"silver/{name}" for name in ("chess", "go"))):
        assert root.everything()[table] == done.everything()[table]
    assert len({row["request"] for row in rows(root.layout.removed)}) == 1
    # nothing is left to do
    maintain(root, new_id="c", **OLD)
    assert removed(root) == going


def test_only_rows_go_that_their_game_has_read_and_streams_go_on_behind_them(done: Root, copy: Copy) -> None:
    root = copy(done)
    root.produce(events=20, games=2, versions=2)
    root.workplace().ingest()
    first = {row["record_id"] for row in done.bronze()}
    waits = {row["record_id"] for row in root.bronze()} - first
    assert waits != set()
    maintain(root, **OLD)
    assert {row["record_id"] for row in root.bronze()} - first == waits
    assert {record for _, record, _ in removed(root)} <= first
    balanced(root)
    for engine in (FLEET, STREAM):
        each = Root.at(root.spark, root.folder, run=engine)
        each.produce(events=20, games=2, versions=2)
        without_errors(round_of(each))
        assert sum(account.waiting for account in balanced(each).accounts) == 0
        maintain(each, new_id=str(engine), **OLD)
        balanced(each)


@pytest.mark.one_lane
def test_rows_that_have_to_be_read_again_before_they_are_gone_stay(done: Root, copy: Copy) -> None:
    root = copy(done)
    with crash.after_writes(1), pytest.raises(AssertionError, match="Crash"):
        maintain(root, **OLD)
    # as a rebuild that was killed leaves it: whoever reads next begins anew
    for part in Path(root.layout.silver_checkpoint("chess")), Path(root.silver_path("chess")):
        part.rename(part.with_name("elsewhere"))
    maintain(root, new_id="b", **OLD)
    assert {game for game, _, _ in removed(root)} == {"go"}
    assert sum(row["game_name"] == "chess" for row in root.bronze()) == sum(
        row["game_name"] == "chess" for row in done.bronze()
    )


@pytest.mark.one_lane
def test_the_command_says_what_it_does_and_refuses_what_nobody_can_mean(
    done: Root, copy: Copy, command: Command
) -> None:
    root = copy(done)
    where = ("--root", str(root.folder))
    before = {path for path in root.folder.rglob("*") if "logs" not in path.parts}
    said = command("maintain", "--dry-run", "--set", "maintain.keep=0s", *where)
    assert (said.code, said.out.splitlines()[-1]) == (0, "nothing was changed")
    assert {path for path in root.folder.rglob("*") if "logs" not in path.parts} == before
    heads = [line.split()[0] for line in said.out.splitlines() if line.startswith(" ")]
    assert heads[-4:] == ["bronze", "silver", "quarantine", "control"]
    assert command("maintain", "--game", "chess", *where).code == 0
    assert command("maintain", *where).code == 0
    assert read_state(root.spark, root.layout).finished
    for words, sentence in (
        (("--game", "ches"), "GAME_UNKNOWN Bronze has no rows of a game ches."),
        (
            ("--set", "maintain.keep=59m"),
            "SETTINGS_INVALID maintain.keep is 3540 seconds, and readers may still be at files of a moment ago.",
        ),
    ):
        refused = command("maintain", *words, *where)
        assert (refused.code, refused.err.splitlines()[0]) == (2, sentence)


@pytest.mark.one_lane
def test_a_run_maintains_the_tables_once_it_is_due_and_a_plan_says_when(
    done: Root, copy: Copy, command: Command
) -> None:
    root = copy(done)
    place = root.workplace()
    assert next_maintenance(place) is None
    maintain_if_due(place)
    due = next_maintenance(place)
    assert due is not None
    assert not read_state(root.spark, root.layout).finished
    said = command("plan", "--root", str(root.folder))
    assert said.out.splitlines()[-1].startswith(f"Maintenance: due at {due:%Y-%m-%d %H:%M} UTC")
    long_ago = datetime.now(timezone.utc) - timedelta(days=2)
    write_state(root.spark, root.layout, State(since=long_ago))
    assert command("run", "--root", str(root.folder)).code == 0
    assert read_state(root.spark, root.layout).finished
    balanced(root)
