"""What `demux sessions` takes and says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from demux.cli.repair.sessions import as_lines, length_of
from demux.core.errors import SettingsInvalid
from demux.operations.sessions import SessionsReport, SessionStep


def test_a_run_is_told_in_rows_and_sessions_and_what_is_late_since_the_beginning() -> None:
    before, now = SessionStep(1000, 2, 0, None, 5), SessionStep(240, 3, 1, 5, 9)
    report = SessionsReport((now,), (before, now), {"watermark": 1040, "flush": 5, None: 12}, 1240)
    assert as_lines(report) == [
        "240 rows taken in, 3 late, 1 without a time",
        "  sessions: 1,040 closed by the watermark, 5 by a flush, 12 open; 5 rows late since the beginning",
    ]


def test_rows_that_repairs_brought_are_told() -> None:
    report = SessionsReport((), (SessionStep(10, 0, 0, None, 5),), {}, 12)
    assert as_lines(report) == [
        "0 rows taken in, 0 late, 0 without a time",
        "  sessions: 0 closed by the watermark, 0 by a flush, 0 open; 0 rows late since the beginning",
        "  2 rows of silver came by repairs, which are skipped; --rebuild takes all",
    ]


@pytest.mark.parametrize(
    ("text", "length"), [("0s", timedelta(0)), ("90s", timedelta(seconds=90)), ("1d", timedelta(1))]
)
def test_a_length_is_written_as_an_age(text: str, length: timedelta) -> None:
    assert length_of("--lateness", text, timedelta(0)) == length


@pytest.mark.parametrize("text", ["", "soon", "30", "-5m", "0s", "3651d", "999999999w", "30m\x1b"])
def test_what_is_no_gap_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid, match="is no length of time") as raised:
        length_of("--gap", text, timedelta(seconds=1))
    assert raised.value.remedy == "Write 90s, 30m, 2h or 1d, from 1s to 3650d."
