"""The state of backfills: what was written down last counts, whatever games are called."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

from demux.core.root.layout import Layout
from deserializer.offsets.days import DayCounts
from deserializer.redecode.backfill_plan import (
    Backfill,
    BackfillRequest,
    Day,
    DayState,
)
from deserializer.redecode.backfill_state import backfills, record

BEGUN = datetime(2026, 2, 1, 12, 0, 0, 123_456, tzinfo=timezone.utc)
FIRST, LAST = date(2026, 1, 1), date(2026, 1, 2)
HOSTILE = "a'b`; drop -- ${x}"


def test_a_backfill_comes_back_as_it_was_written_down_last(tmp_path: Path) -> None:
    layout = Layout(str(tmp_path))
    assert backfills(None, layout) == ()
    days = (Day(HOSTILE, FIRST, 10), Day(HOSTILE, LAST, 20), Day("chess", LAST, 5))
    one = Backfill(
        "one", BackfillRequest((HOSTILE, "chess"), FIRST, LAST), BEGUN, tuple(sorted(days, key=lambda day: day.game))
    )
    other = Backfill("other", BackfillRequest((), None, None), BEGUN + timedelta(hours=1), (Day("chess", FIRST, 1),))
    for each in (one, other):
        record(None, layout, each, each.days, BEGUN)
    record(None, layout, one, (), BEGUN)
    assert backfills(None, layout) == (other, one)
    assert backfills(None, layout, newest=1) == (other,)
    assert [backfills(None, layout, 1, each.asked) for each in (one, other)] == [(one,), (other,)]
    assert backfills(None, layout, 1, BackfillRequest(("chess",), None, None)) == ()

    done = replace(days[0], state=DayState.DONE, counts=DayCounts(10, 9, 1), seconds=1.5)
    failed = replace(days[2], state=DayState.FAILED, condition="TASK_FAILED", sentence="It failed. Again.")
    # at the same time as what was planned
    record(None, layout, one, (done, failed), BEGUN)
    left = replace(one, days=(done, days[1], failed))
    assert backfills(None, layout)[1] == left
    record(None, layout, one, (replace(failed, state=DayState.WAITING),), BEGUN + timedelta(microseconds=1))
    assert [day.state for day in backfills(None, layout)[1].days] == [
        DayState.DONE,
        DayState.WAITING,
        DayState.WAITING,
    ]
