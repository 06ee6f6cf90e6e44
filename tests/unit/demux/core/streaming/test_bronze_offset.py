"""A position in bronze's log: one number for a transaction, and what a stream's offsets say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.streaming.bronze_offset import BronzeOffset, position_in

positions = st.builds(BronzeOffset, st.integers(0, 2**43 - 1), st.integers(0, 2**20 - 1))


@given(positions, positions)
def test_a_position_is_a_number_in_the_same_order(one: BronzeOffset, other: BronzeOffset) -> None:
    assert BronzeOffset.of(one.number) == one
    assert (one < other) == (one.number < other.number)
    assert 0 <= one.number < 2**63


@pytest.mark.parametrize(
    ("offset", "position"),
    [
        # Delta 3 and later: before the first file of the next commit
        ('{"sourceVersion":3,"reservoirId":"a","reservoirVersion":8,"index":-1}', BronzeOffset(8)),
        (
            '{"sourceVersion":1,"reservoirId":"a","reservoirVersion":0,"index":-1,"isStartingVersion":true}',
            BronzeOffset(0),
        ),
        # Delta 2: the last file of a commit, or of what was there at first
        (
            '{"sourceVersion":1,"reservoirId":"a","reservoirVersion":7,"index":2,"isStartingVersion":false}',
            BronzeOffset(8),
        ),
        (
            '{"sourceVersion":1,"reservoirId":"a","reservoirVersion":7,"index":5,"isStartingVersion":true}',
            BronzeOffset(8),
        ),
    ],
)
def test_a_batch_of_a_stream_ends_between_two_commits(offset: str, position: BronzeOffset) -> None:
    assert position_in(f'v1\n{{"batchWatermarkMs":0}}\n{offset}') == position
