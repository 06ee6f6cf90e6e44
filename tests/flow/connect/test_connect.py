"""Commands over Spark Connect, in a process without a JVM: the same tables as by classic Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.support.flow.process import Said, wait_until
from tests.support.flow.root import Root
from tools.servers.connect import ConnectServer

Copy = Callable[..., Root]
Remote = Callable[..., Said]

# a JVM that has just begun plans a whole round: minutes on a busy machine, so this finds what hangs alone
_HANG_S = 600


def done_well(said: Said) -> Said:
    assert (said.code, said.err) == (0, "")
    return said


def test_a_round_takes_in_by_a_stream_and_decodes_by_the_fleet(
    sent: Root, done: Root, copy: Copy, remote: Remote
) -> None:
    root = copy(sent)
    done_well(remote(root, "run"))
    assert root.everything() == done.everything()
    # the next one has nothing to do
    before = {table: DeltaTable(str(root.folder / table)).version() for table in root.everything()}
    done_well(remote(root, "run"))
    assert {table: DeltaTable(str(root.folder / table)).version() for table in before} == before


def test_a_stream_for_each_game_and_repairs_leave_the_same_tables(
    taken_in: Root, done: Root, copy: Copy, remote: Remote
) -> None:
    root = copy(taken_in)
    done_well(remote(root, "run", "--set", "run.engine=stream"))
    assert root.everything() == done.everything()
    done_well(remote(root, "rebuild", "--game", "chess"))
    done_well(remote(root, "backfill", "--game", "go", "--from", "2024-05-01", "--to", "2024-05-31"))
    assert root.everything() == done.everything()


@pytest.mark.timeout(900)
def test_a_server_that_is_killed_in_a_batch_is_found_again_and_nothing_is_doubled(
    sent: Root, done: Root, copy: Copy, remote: Remote, began: Any, server: ConnectServer
) -> None:
    root = copy(sent)
    with began(root, "run") as process:
        # the batch is in bronze, and the server does not know it yet
        wait_until(lambda: Path(root.here.bronze, "_delta_log", "00000000000000000001.json").exists(), process)
        server.kill()
        server.restart()
        said, _ = process.communicate(timeout=_HANG_S)
    assert process.returncode == 0, said
    assert "[SESSION_LOST] The Spark Connect server does not answer" in said
    assert "connecting again" in said
    assert root.everything() == done.everything()


def test_a_server_that_is_not_there_is_told(sent: Root, copy: Copy, remote: Remote) -> None:
    said = remote(copy(sent), "run", "--set", "spark.remote=sc://127.0.0.1:1")
    assert said.code == 4
    assert said.err.startswith("SESSION_LOST The Spark Connect server does not answer")
