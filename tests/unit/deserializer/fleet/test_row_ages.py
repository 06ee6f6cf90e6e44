"""Ages of rows by Arrow kernels: the buckets of the rule; rows without a timestamp and of archives are left out."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone

import pyarrow as pa

from demux.core.control.freshness import NO_FRESHNESS, Freshness, bucket_of
from deserializer.fleet.row_ages import row_ages

NOW = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
# from the future, of less than a millisecond, and up to four years
AGES_S = (-3600.0, 0.0, 0.0005, 0.7, 1.024, 1.5, 59.0, 86_400.0, 126_000_000.0)


def times(ages_s: tuple[float | None, ...]) -> pa.Array:
    found = [None if age is None else NOW - timedelta(seconds=age) for age in ages_s]
    return pa.array(found, pa.timestamp("us", "UTC"))


def test_kernels_give_the_buckets_of_the_rule() -> None:
    rows = row_ages(times(AGES_S), pa.array(["kafka"] * len(AGES_S)), range(len(AGES_S)), NOW)
    assert rows == Freshness.of(Counter(map(bucket_of, AGES_S)))


def test_rows_without_a_timestamp_and_archived_ones_do_not_count() -> None:
    timestamps = times((1.5, None, 1.5, 1.5))
    origins = pa.array(["kafka", "delta", "files", None])
    assert row_ages(timestamps, origins, range(4), NOW) == Freshness(bucket_of(1.5), (2,))
    assert row_ages(times((None,)), pa.array(["delta"]), range(1), NOW) == NO_FRESHNESS


def test_rows_that_did_not_decode_do_not_count() -> None:
    rows = row_ages(times((1.5, 60.0, 1.5)), pa.array(["kafka"] * 3), (0, 2), NOW)
    assert rows == Freshness(bucket_of(1.5), (2,))
