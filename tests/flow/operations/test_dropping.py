"""Rows dropped from quarantine: gone for good, on record, and once, wherever the drop was killed."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from demux import api
from demux.core.causes import Stage
from demux.operations.quarantine.drop import drop, droppable
from demux.operations.quarantine.filter import QuarantineFilter
from demux.operations.reconcile.balance import Ledger
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.replay import replay
from deserializer.silver.file_quarantine import Quarantine
from tests.support.flow import crash
from tests.support.flow.fleet import crash_after, without_errors
from tests.support.flow.process import DEMUX, Command, running, wait_until
from tests.support.flow.root import Root, rows, wrapper

Copy = Callable[..., Root]

NOW = datetime(2030, 1, 1, tzinfo=timezone.utc)
CHESS = QuarantineFilter("chess", before=NOW)


def ids(found: list[dict[str, Any]], stage: Stage | None = None, game: str | None = None) -> list[tuple[str, str]]:
    return sorted(
        (row["record_id"], row["cause"])
        for row in found
        if (stage is None or row["stage"] == stage.value) and (game is None or row["game_name"] == game)
    )


def dropped(root: Root) -> list[dict[str, Any]]:
    return rows(root.layout.dropped)


def balanced(root: Root, killed_at: int = 0) -> Ledger:
    ledger = api.Root(root.settings).reconcile()
    assert (ledger.differences, ledger.notes) == ((), ()), killed_at
    return ledger


@pytest.mark.parametrize("writer", ["files", pytest.param("spark", marks=pytest.mark.both_lanes)])
@pytest.mark.parametrize("writes", [1, 2], ids=["dropped", "quarantine"])
def test_a_drop_that_dies_at_any_of_its_writes_is_finished_by_the_next_one(
    done: Root, copy: Copy, writes: int, writer: str
) -> None:
    root = copy(done)
    if writer == "spark":
        # whoever reads the changes of a table is told by Spark alone which rows are none
        DeltaTable(root.layout.quarantine).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    mine = ids(done.quarantine(), Stage.SILVER, "chess")
    with crash.after_writes(writes), pytest.raises(crash.Crash):
        drop(root.spark, root.layout, CHESS, NOW)
    assert ids(dropped(root)) == mine
    chess, _ = balanced(root).accounts
    # a row that is in both tables is in quarantine
    assert (chess.quarantined, chess.dropped, chess.waiting) == ((len(mine), 0, 0) if writes < 2 else (0, len(mine), 0))

    drop(root.spark, root.layout, CHESS, NOW)
    assert ids(dropped(root)) == mine
    assert ids(root.quarantine()) == sorted(set(ids(done.quarantine())) - set(mine))
    ledger = balanced(root)
    chess, go = ledger.accounts
    assert (chess.quarantined, chess.dropped, chess.waiting) == (0, len(mine), 0)
    assert (go.quarantined, go.dropped) == (len(ids(done.quarantine(), Stage.SILVER, "go")), 0)
    assert root.everything()["silver/chess"] == done.everything()["silver/chess"]
    assert ledger.intake is not None
    assert ledger.intake.dropped == 0


def test_records_that_never_became_a_row_are_dropped_too_and_those_whose_drop_was_killed_can_be_replayed(
    done: Root, copy: Copy
) -> None:
    root = copy(done)
    refused = ids(done.quarantine(), Stage.BRONZE)
    drop(root.spark, root.layout, QuarantineFilter(stage=Stage.BRONZE, before=NOW), NOW)
    assert (ids(dropped(root)), ids(root.quarantine(), Stage.BRONZE)) == (refused, [])
    intake = balanced(root).intake
    assert intake is not None
    assert (intake.quarantined, intake.dropped, intake.source) == (0, len(refused), len(root.source()))

    with crash.after_writes(1), pytest.raises(crash.Crash):
        drop(root.spark, root.layout, CHESS, NOW)
    tried = replay(root.spark, root.layout, root.workplace().schemas, "chess", QuarantineFilter())
    assert tried.tried == len(ids(done.quarantine(), Stage.SILVER, "chess"))
    # they are where they were, and nobody says any more that they were dropped
    assert ids(dropped(root)) == refused
    balanced(root)


def test_a_rebuild_brings_back_what_is_still_bad_and_forgets_that_it_was_dropped(done: Root, copy: Copy) -> None:
    root = copy(done)
    drop(root.spark, root.layout, QuarantineFilter(before=NOW), NOW)
    assert root.quarantine() == []
    place = root.workplace()
    rebuild(Redecoder(root.spark, root.layout, place.schemas), "chess")
    assert ids(root.quarantine()) == ids(done.quarantine(), Stage.SILVER, "chess")
    assert ids(dropped(root)) == sorted(set(ids(done.quarantine())) - set(ids(root.quarantine())))
    balanced(root)


def test_what_was_dropped_before_a_round_of_the_fleet_had_ended_does_not_come_back(taken_in: Root, copy: Copy) -> None:
    root = copy(taken_in, run={"engine": "fleet"})
    with crash_after(Quarantine, "append"), pytest.raises(KeyboardInterrupt):
        root.run()
    bad = ids(root.quarantine(), Stage.SILVER)
    assert bad != []
    drop(root.spark, root.layout, QuarantineFilter(stage=Stage.SILVER, before=NOW), NOW)
    without_errors(root.run())
    assert (ids(dropped(root)), ids(root.quarantine(), Stage.SILVER)) == (bad, [])
    assert sum(account.dropped for account in balanced(root).accounts) == len(bad)


def test_the_command_says_what_goes_and_asks_and_status_counts_it_as_done(
    done: Root, copy: Copy, command: Command
) -> None:
    root = copy(done)
    where = ("--root", str(root.folder))
    old = ("quarantine", "drop", "--older-than", "0s", "--game", "chess", *where)
    groups = droppable(root.spark, root.layout, QuarantineFilter("chess"))
    lines = [f"- drop {one.rows:,} row{'s' if one.rows > 1 else ''} {one.cause} of chess" for one in groups]
    looked = command(*old, "--dry-run")
    assert (looked.code, looked.err) == (0, "")
    assert looked.out.splitlines()[: len(lines)] == lines
    assert looked.out.splitlines()[-1] == "nothing was dropped"
    document = json.loads(command(*old, "--dry-run", "--json").out)
    assert [(group["cause"], group["rows"]) for group in document["groups"]] == [
        (one.cause, one.rows) for one in groups
    ]
    refused = command(*old)
    assert (refused.code, refused.err.splitlines()[0]) == (
        2,
        "SETTINGS_INVALID There is no terminal to ask on, and --yes is not given.",
    )
    assert dropped(root) == []
    assert command(*old, "--yes").code == 0
    assert len(dropped(root)) == sum(one.rows for one in groups)
    assert command(*old, "--yes").out.splitlines() == ["nothing in quarantine is meant by this"]
    said = command("status", *where).out
    assert f"dropped from quarantine: chess {len(dropped(root))}" in said
    (chess,) = [line.split() for line in said.splitlines() if line.startswith(" chess ")]
    # state, rows in, silver, waiting
    assert chess[4] == "0"
    unknown = command("quarantine", "replay", "--game", "ches", *where)
    assert (unknown.code, unknown.err.splitlines()[0]) == (
        2,
        "GAME_UNKNOWN No game 'ches' is known. Did you mean 'chess'?",
    )


# after each of its writes, in this process: tests/flow/streams/test_crashes.py
@pytest.mark.long
def test_a_replay_whose_process_is_killed_wherever_it_is_is_finished_by_the_next_one(
    root: Root, event: str, tmp_path: Path, seed: int
) -> None:
    known = root.register("chess", event)
    payload = root.message(known)(name="ann").SerializeToString()
    root.send([wrapper("chess", known + number % 3, payload) for number in range(300)])
    root.run()
    # a third of the rows decodes now
    assert root.register("chess", f"{event} // again") == known + 1
    undisturbed = root.copied_to(tmp_path / "undisturbed")

    def again(each: Root) -> None:
        replay(each.spark, each.layout, each.workplace().schemas, "chess", QuarantineFilter())

    again(undisturbed)
    tables = {root.layout.quarantine, root.silver_path("chess")}
    before, at = files(tables), random.Random(seed).randrange(1, 7)
    with running([DEMUX, "quarantine", "replay", "--root", str(root.folder)]) as process:
        # data, checksums and commits, whichever comes as the so-manieth; or the end
        wait_until(lambda: len(files(tables) - before) >= at or process.poll() is not None, process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    balanced(root, at)
    again(root)
    assert root.everything() == undisturbed.everything(), at
    balanced(root, at)


def files(tables: set[str]) -> set[Path]:
    return {path for table in tables for path in Path(table).rglob("*") if path.is_file()}
