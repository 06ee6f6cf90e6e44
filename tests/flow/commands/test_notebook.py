"""The notebook that people start from runs from its first cell to its last one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tools.site.notebook import NOTEBOOKS, cells_of, run_cells


def test_the_first_look_shows_games_rows_quarantine_and_a_second_round(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    names = run_cells(cells_of(NOTEBOOKS / "first-look.ipynb")).names
    try:
        root, first, second = names["root"], names["first"], names["second"]
        assert (first.ingested.rows_in, second.ingested.rows_in) == (3000, 500)
        assert root.games() == ("backgammon", "chess", "go")
        assert [end.error for end in (*first.ended, *second.ended)] == [None] * 6
        moves = sum(end.report.rows_silver for end in first.ended if end.task.game == "chess")
        assert len(names["moves"]) == moves
        assert names["counts"].sum() == moves
        assert names["bad"]["records"].sum() == len(
            root.quarantine(most=1000)
        ) - second.ingested.rows_quarantined - sum(end.report.rows_quarantined for end in second.ended)
        assert root.reconcile().balances
    finally:
        shutil.rmtree(names["folder"])
