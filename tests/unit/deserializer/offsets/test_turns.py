"""Whose turn a game is, as a number that only grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deserializer.offsets.epoch import GameEpoch, fleet_epoch
from deserializer.offsets.unread_files import START, BronzeOffset

positions = st.builds(BronzeOffset, st.integers(0, 2**28 - 1), st.integers(0, 2**20 - 1))
turns = st.builds(GameEpoch, st.integers(0, 2**15 - 1), positions)


@given(turns, turns)
def test_a_turn_is_a_number_in_the_same_order(one: GameEpoch, other: GameEpoch) -> None:
    assert GameEpoch.of(one.version) == one
    assert (one.version < other.version) == ((one.number, one.position) < (other.number, other.position))
    assert one.version < 2**63


@given(st.integers(0, 2**14 - 2), positions, positions)
def test_the_number_grows_whenever_the_game_changes_hands(
    times: int, before: BronzeOffset, after: BronzeOffset
) -> None:
    fleet = GameEpoch(2 * times, before)
    stream = fleet.of_stream()
    again = GameEpoch(fleet_epoch(stream.version), after)
    assert [turn.is_the_fleets for turn in (fleet, stream, again)] == [True, False, True]
    assert fleet.version < stream.version < again.version
    assert fleet_epoch(again.version) == again.number


def test_the_fleet_begins_with_the_first_turn() -> None:
    assert fleet_epoch(None) == 0
    assert GameEpoch(0, START).version == 0


def test_a_stream_begins_with_a_whole_commit() -> None:
    assert GameEpoch(0, BronzeOffset(7)).of_stream() == GameEpoch(1, BronzeOffset(7))
    assert GameEpoch(4, BronzeOffset(7, 3)).of_stream() == GameEpoch(5, BronzeOffset(8))
