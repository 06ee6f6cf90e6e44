"""Which offsets are lost, and where a stream stands behind them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bronze_ingest.kafka.lost_offsets import (
    Gap,
    Loss,
    Offsets,
    TopicState,
    begins,
    gaps,
    kafka_offsets,
    past_gaps,
    source_line,
    start_line,
    start_with_line,
    text_of,
    with_line,
)

LOG = 'v1\n{"batchWatermarkMs":0,"conf":{}}\n{"t":{"0":5}}\n{"logOffset":3}'


def topic(name: str, topic_id: str = "id 1", **offsets: dict[int, int]) -> dict[str, TopicState]:
    return {name: TopicState(name, topic_id, offsets.get("earliest", {0: 0}), offsets.get("latest", {0: 100}))}


def test_nothing_is_lost_between_the_first_record_and_the_end() -> None:
    now = topic("t", earliest={0: 5, 1: 0}, latest={0: 9, 1: 0})
    for at in (5, 7, 9):
        assert gaps({"t": {0: at, 1: 0}}, {}, now, {"t": "id 1"}) == ()
    # nobody remembers which topic it was
    assert gaps({"t": {0: 7, 1: 0}}, {}, now, {}) == ()


def test_what_expired_is_lost_up_to_the_first_record_that_is_there() -> None:
    now = topic("t", earliest={0: 5}, latest={0: 9})
    for at in (2, 4):
        assert gaps({"t": {0: at}}, {}, now, {"t": "id 1"}) == (Gap("t", "id 1", 0, at, 5, Loss.EXPIRED),)


def test_a_partition_that_was_added_is_needed_from_its_beginning() -> None:
    now = topic("t", earliest={0: 0, 1: 0, 2: 4}, latest={0: 9, 1: 9, 2: 9})
    assert gaps({"t": {0: 3}}, {}, now, {"t": "id 1"}) == (Gap("t", "id 1", 2, 0, 4, Loss.EXPIRED),)


@pytest.mark.parametrize(
    ("needed", "begun", "end"),
    [({0: 12}, {}, 12), ({0: 9}, {0: 11}, 11), ({0: 12}, {0: 15}, 15)],
    ids=["behind the end", "in the batch that must come again", "both"],
)
def test_a_log_that_was_cut_off_is_lost_from_its_end(needed: dict[int, int], begun: dict[int, int], end: int) -> None:
    now = topic("t", latest={0: 10})
    found = gaps({"t": needed}, {"t": begun} if begun else {}, now, {"t": "id 1"})
    assert found == (Gap("t", "id 1", 0, 10, end, Loss.CUT_OFF),)


def test_a_topic_that_was_made_again_is_lost_from_where_the_stream_stands_even_where_offsets_fit() -> None:
    found = gaps({"t": {1: 0, 0: 7}}, {"t": {0: 9}}, topic("t", "id 2"), {"t": "id 1"})
    assert found == (
        Gap("t", "id 1", 0, 7, None, Loss.MADE_AGAIN),
        Gap("t", "id 1", 1, 0, None, Loss.MADE_AGAIN),
    )


def test_a_topic_that_is_not_there_is_lost_from_where_the_stream_stands() -> None:
    assert gaps({"t": {0: 7}}, {}, {}, {}) == (Gap("t", None, 0, 7, None, Loss.GONE),)


def test_gaps_come_in_order_of_topic_and_partition() -> None:
    now = {**topic("b", earliest={10: 1, 2: 1}, latest={10: 1, 2: 1}), **topic("a", earliest={0: 1}, latest={0: 1})}
    found = gaps({"b": {10: 0, 2: 0}, "a": {0: 0}}, {}, now, {})
    assert [(gap.topic, gap.partition) for gap in found] == [("a", 0), ("b", 2), ("b", 10)]


@pytest.mark.parametrize(
    ("first", "end", "sentence"),
    [
        (7, None, "topic t, partition 3: everything from offset 7 on"),
        (7, 8, "topic t, partition 3: offset 7 (1 record)"),
        (7, 1_207, "topic t, partition 3: offsets 7 to 1206 (1,200 records)"),
    ],
)
def test_a_gap_is_told_with_topic_partition_and_range(first: int, end: int | None, sentence: str) -> None:
    assert str(Gap("t", "id", 3, first, end, Loss.EXPIRED)) == sentence


def test_a_new_topic_begins_at_its_first_record_or_where_it_was_left() -> None:
    now = {
        **topic("known"),
        **topic("whole", "id 2", earliest={0: 0, 1: 0}),
        **topic("expired", "id 3", earliest={0: 0, 1: 4}),
        **topic("left", "id 4", earliest={0: 0, 1: 9}),
        **topic("other", "id 6"),
    }
    left = {("id 4", 0): 6, ("id 4", 1): 6, ("id 5", 0): 8}
    assert begins({"known": {0: 1}}, now, left) == {"expired": {0: 0, 1: 4}, "left": {0: 6, 1: 9}}


def test_behind_an_expired_range_a_batch_begins_later_and_does_not_end_earlier() -> None:
    lost = [Gap("t", "id 1", 0, 2, 5, Loss.EXPIRED), Gap("t", "id 1", 1, 0, 3, Loss.EXPIRED)]
    assert past_gaps({"t": {0: 2}}, lost, {}) == {"t": {0: 5, 1: 3}}
    assert past_gaps({"t": {0: 8}, "u": {0: 1}}, lost, {}) == {"t": {0: 8, 1: 3}, "u": {0: 1}}


def test_behind_a_log_that_was_cut_off_nothing_is_read_twice_and_nothing_awaited() -> None:
    lost = [Gap("t", "id 1", 0, 10, 15, Loss.CUT_OFF)]
    assert past_gaps({"t": {0: 9}}, lost, {}) == {"t": {0: 9}}
    assert past_gaps({"t": {0: 15}}, lost, {}) == {"t": {0: 10}}


def test_a_topic_made_again_is_read_from_its_beginning_and_one_that_is_gone_is_forgotten() -> None:
    lost = [Gap("t", "id 1", 0, 7, None, Loss.MADE_AGAIN), Gap("u", "id 1", 0, 7, None, Loss.GONE)]
    now = topic("t", "id 2", earliest={0: 0, 1: 3})
    assert past_gaps({"t": {0: 7, 5: 1}, "u": {0: 7}, "v": {0: 7}}, lost, now) == {"t": {0: 0, 1: 3}, "v": {0: 7}}


OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(0, 30), min_size=1)


@st.composite
def brokers(draw: st.DrawFn) -> tuple[Offsets, Offsets, dict[str, TopicState], dict[str, str]]:
    """Where a stream stands, where its begun batch ends, and the topics that the broker has."""
    needed = draw(st.dictionaries(st.sampled_from("ab"), OFFSETS, min_size=1))
    begun = {name: {at: needed[name][at] + draw(st.integers(0, 9)) for at in needed[name]} for name in needed}
    now = {}
    for name in draw(st.sets(st.sampled_from("abc"))):
        partitions = {*needed.get(name, {}), *draw(st.sets(st.integers(0, 4)))}
        earliest = {at: draw(st.integers(0, 30)) for at in partitions}
        latest = {at: earliest[at] + draw(st.integers(0, 9)) for at in partitions}
        now[name] = TopicState(name, draw(st.sampled_from(["id 1", "id 2"])), earliest, latest)
    return needed, draw(st.sampled_from([{}, begun])), now, dict.fromkeys("ab", "id 1")


@given(brokers())
def test_behind_the_gaps_nothing_is_lost_any_more_and_moving_again_changes_nothing(
    found: tuple[Offsets, Offsets, dict[str, TopicState], dict[str, str]],
) -> None:
    needed, begun, now, known = found
    lost = gaps(needed, begun, now, known)
    start, end = past_gaps(needed, lost, now), past_gaps(begun, lost, now)
    assert gaps(start, end, now, {name: topic.topic_id for name, topic in now.items()}) == ()
    assert (past_gaps(start, lost, now), past_gaps(end, lost, now)) == (start, end)
    if begun:
        # what begins must end: the same partitions, and never before
        assert {name: set(by) for name, by in start.items()} == {name: set(by) for name, by in end.items()}
        assert all(start[name][at] <= end[name][at] for name in start for at in start[name])
    if not lost:
        assert (start, end) == (needed, begun)


def test_a_line_of_another_source_is_no_offsets() -> None:
    assert kafka_offsets('{"t":{"0":5,"1":0}}') == {"t": {0: 5, 1: 0}}
    assert kafka_offsets("{}") == {}
    for line in ('{"logOffset":3}', '{"sourceVersion":1,"reservoirId":"x"}', "3", "-", ""):
        assert kafka_offsets(line) is None


def test_the_line_of_a_source_is_found_and_replaced() -> None:
    assert source_line(LOG, 0) == '{"t":{"0":5}}'
    assert [source_line(LOG.replace('{"t":{"0":5}}', "-"), 0), source_line(LOG, 2)] == [None, None]
    assert with_line(LOG, 0, "{}").splitlines() == [*LOG.splitlines()[:2], "{}", '{"logOffset":3}']


def test_the_file_of_the_beginning_has_a_zero_byte_and_a_version_before_the_line() -> None:
    assert start_line('\0v1\n{"t":{"0":5}}') == '{"t":{"0":5}}'
    assert start_with_line("{}") == "\0v1\n{}"


@given(st.dictionaries(st.text(), OFFSETS))
def test_offsets_come_back_from_their_text(offsets: Offsets) -> None:
    assert kafka_offsets(text_of(offsets)) == offsets
