"""What a table's log says of the days of its files."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deserializer.offsets.days import Span
from deserializer.offsets.logged_files import LoggedFile, files_of_table

FIRST, SECOND, THIRD = (date(2026, 1, day) for day in (1, 2, 3))


@pytest.mark.parametrize(
    ("first", "last", "may"),
    [
        (None, None, True),
        (FIRST, FIRST, False),
        (FIRST, SECOND, True),
        (SECOND, SECOND, True),
        (THIRD, THIRD, False),
        (FIRST, None, True),
        (THIRD, None, False),
        (None, FIRST, False),
    ],
)
def test_a_file_is_looked_at_where_its_bounds_allow_for_rows_of_the_days(
    first: date | None, last: date | None, may: bool
) -> None:
    assert LoggedFile("a", "/a", 1, first=first, last=last).may_have(Span(SECOND, SECOND)) is may


def test_days_are_those_of_the_log_and_unknown_where_no_calendar_has_them(tmp_path: Path) -> None:
    end_of_day = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=timezone.utc)
    for game, times in (("a b", [end_of_day, end_of_day]), ("go", [end_of_day, 2**62]), ("go", [None])):
        at = pa.array(times, pa.timestamp("us", "UTC"))
        table = pa.table({"game_name": pa.array([game] * len(times), pa.string()), "timestamp": at})
        write_deltalake(tmp_path, table, mode="append", partition_by=["game_name"])
    found = files_of_table(DeltaTable(tmp_path), str(tmp_path), "timestamp")
    (chess,) = found["a b"]
    assert (chess.rows, chess.first, chess.last, chess.only_day) == (2, FIRST, FIRST, FIRST)
    assert (Path(chess.where).is_file(), chess.name in chess.path) == (True, True)
    assert {(one.rows, one.undated, one.last, one.only_day) for one in found["go"]} == {
        (2, 0, None, None),
        (1, 1, None, None),
    }
