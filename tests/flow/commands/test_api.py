"""A round from Python: the tables are those that the command makes, and one root has one writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from demux import api
from demux.core.errors import RootLocked
from demux.core.root.lock import Access, hold_root
from tests.support.flow.root import Root
from tests.support.http_receiver import receiving
from tests.support.openlineage_schema import mistakes

Copy = Callable[..., Root]


def test_a_round_from_python_makes_the_tables_that_the_command_makes(
    taken_in: Root, done: Root, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copy(taken_in)
    mine = api.Root(root.settings)
    with receiving() as receiver:
        monkeypatch.setenv("OPENLINEAGE_URL", receiver.url)
        result = mine.run(root.spark)
        events = receiver.wait_for(8)
    monkeypatch.delenv("OPENLINEAGE_URL")
    assert [(end.task.game, end.error) for end in result.ended] == [("chess", None), ("go", None)]
    assert root.everything() == done.everything()
    assert mine.games() == ("chess", "go")
    assert [game.lag_rows for game in mine.status().games] == [0, 0]

    table = mine.silver("chess")
    by_arrow = sorted(table.arrow(["_record_id"]).column(0).to_pylist())
    assert by_arrow == sorted(row._record_id for row in table.spark(root.spark).select("_record_id").collect())
    assert len(mine.quarantine()) == len(root.quarantine())
    # nothing is new
    assert mine.run(root.spark).ended == ()

    # lineage of the round has the rows and the columns that its tables have
    assert [mistakes(event) for event in events] == [[]] * 8
    (chess,) = (e for e in events if e["job"]["name"] == "demux.silver.chess" and e["eventType"] == "COMPLETE")
    silver = chess["outputs"][0]
    assert silver["name"] == table.path
    assert silver["outputFacets"]["outputStatistics"]["rowCount"] == len(by_arrow)
    assert [field["name"] for field in silver["facets"]["schema"]["fields"]] == table.arrow().column_names


def test_a_root_that_another_command_works_on_is_refused(taken_in: Root, copy: Copy, tmp_path: Path) -> None:
    root = copy(taken_in)
    with hold_root(root.settings.root, "run", wait=False, access=Access.ALONE), pytest.raises(RootLocked):
        api.Root(root.settings).run(root.spark)
