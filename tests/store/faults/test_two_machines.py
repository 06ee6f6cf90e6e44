"""Two machines take turns on a root in a store: processes with homes of their own, whose clocks differ by minutes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from demux.core.storage.files import Storage
from tests.support.flow.process import PROJECT, wait_for_line
from tools.servers.stores.s3 import ObjectStore

PERIOD_S = 2.0
TURNS = 4


@contextmanager
def machine(
    store: ObjectStore, root: str, home: Path, clock_off_s: float, turns: int
) -> Iterator[subprocess.Popen[str]]:
    """Start a machine; it is dead when the block ends."""
    home.mkdir()
    words = [
        sys.executable,
        "-m",
        "tests.support.store.machine",
        store.url,
        root,
        str(PERIOD_S),
        str(clock_off_s),
        str(turns),
    ]
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(
        words, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_machine_that_is_stopped_for_longer_than_the_lease_commits_nothing_of_its_turn(
    in_store: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    with ExitStack() as stack:
        # its clock is ten minutes behind, the other's ten minutes ahead
        stopped = stack.enter_context(machine(object_store, root, tmp_path / "a", -600.0, TURNS))
        wait_for_line(stopped, "ready")
        os.kill(stopped.pid, signal.SIGSTOP)
        other = stack.enter_context(machine(object_store, root, tmp_path / "b", 600.0, TURNS))
        # it waits for the end of the lease, and works
        wait_for_line(other, "ready")
        mine, _ = other.communicate(timeout=120)
        os.kill(stopped.pid, signal.SIGCONT)
        his, _ = stopped.communicate(timeout=120)
    assert (other.returncode, stopped.returncode) == (0, 0), (mine, his)
    assert "lost" in his.splitlines()
    assert "lost" not in mine.splitlines()
    found = in_store.table(f"{root}/table").to_pyarrow_table().sort_by("number").to_pydict()
    assert found["number"] == [*range(1, 2 * TURNS + 1)]
    assert [found["machine"].count(name) for name in sorted(set(found["machine"]))] == [TURNS, TURNS]


def test_machines_that_are_stopped_again_and_again_commit_each_row_once(
    in_store: Storage, object_store: ObjectStore, tmp_path: Path
) -> None:
    root = f"s3://demux/{tmp_path.name}"
    with ExitStack() as stack:
        machines = [
            stack.enter_context(machine(object_store, root, tmp_path / name, off, TURNS))
            for name, off in (("a", 300.0), ("b", -300.0))
        ]
        for number in range(2 * TURNS):
            process = machines[number % 2]
            if process.poll() is None:
                os.kill(process.pid, signal.SIGSTOP)
                # sometimes longer than the lease, sometimes shorter
                _elapse(PERIOD_S * (0.3 + 0.4 * (number % 4)))
                os.kill(process.pid, signal.SIGCONT)
                _elapse(PERIOD_S / 4)
        said = [process.communicate(timeout=120)[0] for process in machines]
    assert [process.returncode for process in machines] == [0, 0], said
    found = in_store.table(f"{root}/table").to_pyarrow_table().sort_by("number").to_pydict()
    assert found["number"] == [*range(1, 2 * TURNS + 1)]


def _elapse(seconds: float) -> None:
    subprocess.run(["sleep", str(seconds)], check=True)
