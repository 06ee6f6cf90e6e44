"""A crash anywhere, then the same command again: every table is as if nothing had happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from demux.core.causes import Cause
from demux.core.errors import TaskFailed
from demux.core.settings.settings import Sink
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.redecode.replay import replay
from tests.support.flow import crash
from tests.support.flow.root import Root, wrapper

Copy = Callable[..., Root]
Place = Callable[[Root], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("sink", "place"),
    [
        pytest.param(
            "files",
            lambda root: crash.after_making(root.layout.bronze),
            id="files: bronze is made, and nothing in it",
        ),
        pytest.param(
            "files",
            lambda root: crash.after_committing(root.layout.bronze),
            id="files: after bronze, before quarantine",
            marks=pytest.mark.both_lanes,
        ),
        pytest.param("files", lambda root: crash.after_all_writes(), id="files: after all writes"),
        pytest.param(
            "spark", lambda root: crash.after_writing(root.layout.bronze), id="spark: after bronze, before quarantine"
        ),
        pytest.param(
            "spark",
            lambda root: crash.after_all_writes(),
            id="spark: after all writes",
            marks=pytest.mark.both_lanes,
        ),
    ],
)
def test_bronze_after_a_crash_is_as_if_there_had_been_none(
    sent: Root, taken_in: Root, copy: Copy, place: Place, sink: str
) -> None:
    root = copy(sent, run={"sink": sink})
    with place(root), pytest.raises(TaskFailed):
        root.workplace().ingest()
    report = root.workplace().ingest()
    assert root.everything() == taken_in.everything()
    assert (report.rows_in, report.rows_quarantined) == (240, len(taken_in.quarantine()))


@pytest.mark.both_lanes
def test_a_crash_while_columns_are_added_leaves_them_before_the_origin_in_the_end(
    streamed: Root, copy: Copy, tmp_path: Path
) -> None:
    undisturbed = copy(streamed)
    undisturbed.produce(events=40, games=1, versions=3, fault_rate=0.2)
    undisturbed.workplace().ingest()
    root = undisturbed.copied_to(tmp_path / "crashed")
    undisturbed.workplace().deserialize("chess")
    with crash.before_sql("ALTER TABLE"), pytest.raises(TaskFailed):
        root.workplace().deserialize("chess")
    # the columns are there and in the wrong place: the crash came between the two steps
    assert root.silver_columns("chess")[-1] == "col_chess_game_3"
    root.workplace().deserialize("chess")
    assert root.everything() == undisturbed.everything()
    assert root.silver_columns("chess")[-1] == "_decoded_at"


@pytest.mark.parametrize("sink", [Sink.FILES, pytest.param(Sink.SPARK, marks=pytest.mark.both_lanes)])
@pytest.mark.parametrize("writes", [1, 2, 3], ids=["schema", "silver", "quarantine"])
def test_a_replay_that_dies_at_any_of_its_writes_is_finished_by_the_next_one(
    root: Root, event: str, writes: int, sink: Sink
) -> None:
    first = root.register("chess", event)
    payload = root.message(first)(name="ann").SerializeToString()
    root.send([wrapper("chess", first, payload), wrapper("chess", first + 1, payload), wrapper("chess", 0, payload)])
    root.run()
    # no new column: the first write to the table is that of the rows
    assert root.register("chess", f"{event} // again") == first + 1
    choice = QuarantineFilter(causes=(Cause.UNKNOWN_SCHEMA,))
    with crash.after_writes(writes, crash.Death), pytest.raises(crash.Death):
        replay(root.spark, root.layout, root.workplace().schemas, "chess", choice, sink)
    assert [row["record_id"] for row in root.quarantine()] == ["t/0/1", "t/0/2"][writes // 3 :]
    assert [row["_record_id"] for row in root.silver("chess")] == ["t/0/0", "t/0/1"][: min(writes, 2)]

    again = replay(root.spark, root.layout, root.workplace().schemas, "chess", choice, sink)
    assert (again.tried, again.decoded) == ((2, 1) if writes < 3 else (1, 0))
    assert [row["record_id"] for row in root.quarantine()] == ["t/0/2"]
    assert Counter(row["_record_id"] for row in root.silver("chess")) == {"t/0/0": 1, "t/0/1": 1}
