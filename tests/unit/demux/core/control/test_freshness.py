"""The sketch of ages: quantiles within the stated error, merging by addition, ages at a later time."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.control.freshness import LAST_BUCKET, NO_FRESHNESS, Freshness, bucket_of, merge

AGES = st.lists(st.floats(0.002, 10_000_000), min_size=1, max_size=200)


def sketch_of(ages: list[float]) -> Freshness:
    return Freshness.of(Counter(map(bucket_of, ages)))


def true_quantile(ages: list[float], share: float) -> float:
    return sorted(ages)[max(0, math.ceil(share * len(ages)) - 1)]


@given(AGES, st.sampled_from([0.5, 0.95, 1.0]))
def test_a_quantile_is_within_the_stated_error(ages: list[float], share: float) -> None:
    assert sketch_of(ages).quantile_s(share) == pytest.approx(true_quantile(ages, share), rel=0.045)


@given(AGES, st.floats(0, 1000))
def test_ages_at_a_later_time_are_within_the_stated_error(ages: list[float], seconds: float) -> None:
    later = true_quantile(ages, 0.95) + seconds
    assert sketch_of(ages).later(seconds).p95_s == pytest.approx(later, rel=0.091)


@given(AGES, AGES)
def test_two_sketches_merge_to_that_of_all_rows(one: list[float], other: list[float]) -> None:
    assert merge([sketch_of(one), sketch_of(other)]) == sketch_of([*one, *other])


@given(AGES)
def test_a_column_holds_all_of_it(ages: list[float]) -> None:
    sketch = sketch_of(ages)
    assert Freshness.from_column(sketch.to_column()) == sketch


def test_no_rows_have_no_freshness() -> None:
    assert merge([]) == Freshness.of({3: 0}) == NO_FRESHNESS.later(5) == Freshness.from_column(None) == NO_FRESHNESS
    assert (NO_FRESHNESS.to_column(), NO_FRESHNESS.p50_s) == (None, None)


@pytest.mark.parametrize(
    ("age_s", "bucket"), [(-5.0, 0), (0.0, 0), (0.001, 0), (0.002, 8), (1.024, 80), (1e15, LAST_BUCKET)]
)
def test_every_age_has_a_bucket(age_s: float, bucket: int) -> None:
    assert bucket_of(age_s) == bucket
