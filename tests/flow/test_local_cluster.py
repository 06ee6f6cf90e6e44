"""The whole flow on executors that are other processes: nothing relies on the driver's memory or files."""

from __future__ import annotations

from collections.abc import Callable

from tests.flow.process import DEMUX, run
from tests.flow.root import Root


def test_a_run_on_a_cluster_of_two_executor_processes_makes_the_same_tables(
    sent: Root, done: Root, copy: Callable[..., Root]
) -> None:
    root = copy(sent)
    said = run([DEMUX, "run", "--root", str(root.folder), "--set", "spark.master=local-cluster[2,1,1024]"])
    assert said.code == 0, said.out + said.err
    executors = {path.name for path in (root.folder / "logs" / "workers").glob("app-*/*")}
    assert executors == {"0", "1"}
    assert root.everything() == done.everything()
