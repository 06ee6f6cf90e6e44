"""The whole flow on executors that are other processes: nothing relies on the driver's memory or files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyspark

from tests.support.flow.process import DEMUX, run
from tests.support.flow.root import Root


def test_a_run_on_a_cluster_of_two_executor_processes_makes_the_same_tables(
    sent: Root, done: Root, copy: Callable[..., Root]
) -> None:
    root = copy(sent)
    # where Spark's workers put the executors' files, whatever the session says
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.glob("app-*"))
    said = run([DEMUX, "run", "--root", str(root.folder), "--set", "spark.master=local-cluster[2,1,1024]"])
    assert said.code == 0, said.out + said.err
    (own,) = set(work.glob("app-*")) - before
    assert {path.name for path in own.iterdir()} == {"0", "1"}
    shutil.rmtree(own)
    assert root.everything() == done.everything()
