"""Rows of Arrow as Python has them."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.columns.arrow import python_rows

KINDS = {
    "at": pa.timestamp("us", tz="UTC"),
    "ms": pa.timestamp("ms", tz="UTC"),
    "number": pa.int64(),
    "names": pa.list_(pa.string()),
}
times = st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
    lambda at: at.replace(tzinfo=timezone.utc, microsecond=at.microsecond // 1000 * 1000)
)
rows = st.fixed_dictionaries(
    {"at": times, "ms": times, "number": st.none() | st.integers(-9, 9), "names": st.none() | st.lists(st.text())}
)


@given(st.lists(rows, max_size=5))
def test_they_are_those_of_arrow_itself(found: list[dict[str, object]]) -> None:
    table = pa.Table.from_pylist(found, pa.schema(list(KINDS.items())))
    assert python_rows(table) == table.to_pylist() == found
    assert python_rows(pa.concat_tables([table, table])) == [*found, *found]


@pytest.mark.thorough
def test_a_time_does_not_load_pandas() -> None:
    program = (
        "import sys, pyarrow as pa; from demux.core.columns.arrow import python_rows;"
        "kind, zero = pa.timestamp('us', 'UTC'), pa.py_buffer(bytes(8));"
        "table = pa.table({'at': pa.Array.from_buffers(kind, 1, [None, zero])});"
        "assert str(python_rows(table)[0]['at']) == '1970-01-01 00:00:00+00:00'; assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
