"""`demux deserialize` with the fleet, as a deployment's task runs the games of its cluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from demux.core.control.games_and_rounds import Control, TaskOutcome
from demux.core.errors import ExitCode
from tests.support.flow.process import Command, Said
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]
EVENT = 'syntax = "proto3"; message Event { string name = 1; }'


def task(command: Command, root: Root, *more: str) -> Said:
    """What a cluster's task does with its two games."""
    changes = [word for change in ("run.retry_wait_s=0", *more) for word in ("--set", change)]
    return command("deserialize", "--game=chess", "--game-key=go", "--root", str(root.folder), *changes)


def ends(said: Said) -> list[str]:
    """A line for each game, without its time, sorted."""
    return sorted(re.sub(r", in \d.*", "", line) for line in said.out.splitlines())


def records(root: Root) -> dict[str, tuple[TaskOutcome, int, int, int, str | None]]:
    """Each game's last record without its time."""
    last = Control(root.spark, root.layout).history().last
    return {
        game: (one.outcome, one.rows_in, one.rows_silver, one.rows_quarantined, one.condition)
        for game, one in last.items()
    }


def test_a_clusters_games_are_decoded_together_with_the_tables_reports_and_records_of_streams(
    taken_in: Root, done: Root, copy: Copy, command: Command, tmp_path: Path
) -> None:
    streams, fleet = copy(taken_in), taken_in.copied_to(tmp_path / "fleet")
    by_stream, by_fleet = task(command, streams), task(command, fleet, "run.engine=fleet")
    assert (by_stream.code, by_fleet.code) == (0, 0), by_fleet.out + by_fleet.err
    assert ends(by_fleet) == ends(by_stream)
    assert records(fleet) == records(streams)
    assert fleet.everything() == streams.everything() == done.everything()
    # the job's next run, with the other engine or with this one
    for engine in ("stream", "fleet"):
        assert [line.split(":")[1] for line in ends(task(command, fleet, f"run.engine={engine}"))] == [" 0 rows"] * 2
    assert fleet.everything() == done.everything()


def test_a_game_that_fails_is_told_by_the_exit_code_and_leaves_the_other(
    taken_in: Root, done: Root, copy: Copy, command: Command
) -> None:
    root = copy(taken_in)
    silver = root.folder / "silver"
    silver.mkdir()
    # not even root can make a folder where a file is
    (silver / "chess").write_text("in the way")
    said = task(command, root, "run.engine=fleet", "run.retries=0")
    assert said.code in {ExitCode.GAMES_FAILED, ExitCode.TRANSIENT}
    assert len(root.silver("go")) == len(done.silver("go"))
    outcomes = {game: (record[0], record[4] is None) for game, record in records(root).items()}
    assert outcomes == {"chess": (TaskOutcome.FAILED, False), "go": (TaskOutcome.DONE, True)}
    (silver / "chess").unlink()
    assert task(command, root, "run.engine=fleet").code == 0
    assert root.everything() == done.everything()


def test_a_task_reads_all_that_waits_in_as_many_rounds_as_that_takes(root: Root, command: Command) -> None:
    ids = {game: root.register(game, EVENT) for game in ("chess", "go")}
    payload = root.message(ids["go"])(name="ann").SerializeToString()
    for batch in range(3):
        root.send([wrapper("chess", ids["chess"], payload)] * 8, first_offset=8 * batch)
        root.workplace().ingest()
    root.send([wrapper("go", ids["go"], payload)], first_offset=24)
    root.workplace().ingest()
    said = task(command, root, "run.engine=fleet", "run.rows_per_game=10")
    assert said.code == 0, said.out + said.err
    assert ends(said) == [
        "chess: 24 rows: 24 to silver, 0 to quarantine",
        "go: 1 rows: 1 to silver, 0 to quarantine",
    ]
    assert [len(root.silver(game)) for game in ("chess", "go")] == [24, 1]
    assert records(root)["chess"] == (TaskOutcome.DONE, 24, 24, 0, None)
