"""Arrow arrays put together."""

from __future__ import annotations

import pyarrow as pa

from demux.core.columns.arrow import spread


def test_values_at_their_places_leave_null_at_all_others() -> None:
    assert spread(pa.array(["a", "b"]), [3, 1], 5).to_pylist() == [None, "b", None, "a", None]
    assert spread(pa.array([], pa.string()), [], 2).to_pylist() == [None, None]
    assert spread(pa.array([], pa.string()), [], 0).to_pylist() == []
