"""A process that is killed in the middle of its work: the next run completes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from tests.support.flow.process import DEMUX, running, wait_until
from tests.support.flow.root import Root


def test_a_run_that_is_killed_between_two_tables_is_completed_by_the_next_one(
    sent: Root, done: Root, copy: Callable[..., Root]
) -> None:
    root = copy(sent)
    first_of_silver = root.folder / "silver" / "chess" / "_delta_log" / f"{0:020}.json"
    with running([DEMUX, "run", "--root", str(root.folder), "--set", "run.parallelism=1"]) as process:
        wait_until(first_of_silver.exists, process)
        # everything at once, Spark's JVM included, as when the machine goes down
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert not (root.folder / "checkpoints" / "silver" / "go").exists()

    root.run()
    assert root.everything() == done.everything()
