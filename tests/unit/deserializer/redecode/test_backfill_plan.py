"""Which days are decoded again, what is done together, and what an earlier run has left."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import RangeInvalid
from deserializer.offsets.days import DayCounts, Span
from deserializer.redecode.backfill_plan import (
    Backfill,
    BackfillChunk,
    BackfillRequest,
    BronzeDays,
    Day,
    DayState,
    chunks,
    complete_days,
    estimate,
    find_unfinished_backfill,
    mark_failed,
    request_backfill,
    require_found,
    to_do,
    waves,
)

FIRST = date(2026, 1, 1)
BEGUN = datetime(2026, 2, 1, tzinfo=timezone.utc)
DONE = DayState.DONE


def day(game: str, at: int, rows: int = 10, state: DayState = DayState.WAITING) -> Day:
    return Day(game, FIRST + timedelta(days=at), rows, state)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def numbers(chunk: BackfillChunk) -> list[int]:
    return [(one.day - FIRST).days for one in chunk.days]


days_of_games = st.lists(
    st.builds(
        day,
        st.sampled_from(["chess", "go", "tennis"]),
        st.integers(0, 40),
        st.integers(0, 9),
        st.sampled_from(DayState),
    ),
    max_size=40,
    unique_by=lambda one: (one.game, one.day),
).map(lambda found: sorted(found, key=lambda one: (one.game, one.day)))


def test_the_days_of_two_times_are_asked_for_both_included_in_utc() -> None:
    wanted = request_backfill(["go", "chess", "go"], at("2026-01-01T23:30:00-01:00"), at("2026-01-03T23:59:59+00:00"))
    assert wanted == BackfillRequest(("chess", "go"), date(2026, 1, 2), date(2026, 1, 3))
    assert [wanted.has(date(2026, 1, number)) for number in (1, 2, 3, 4)] == [False, True, True, False]


def test_either_end_may_be_left_out() -> None:
    since, until = (
        request_backfill([], at("2026-01-02T00:00:00+00:00"), None),
        request_backfill([], None, at("2026-01-02T00:00:00+00:00")),
    )
    assert [since.has(date.max), since.has(FIRST), until.has(date.min), until.has(date(2026, 1, 3))] == [
        True,
        False,
        True,
        False,
    ]


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(RangeInvalid) as refused:
        request_backfill([], at("2026-01-03T00:00:00+00:00"), at("2026-01-02T23:59:59+00:00"))
    assert refused.value.message == "The range begins on 2026-01-03 and ends on 2026-01-02, before that."


def test_a_span_is_sql_of_its_two_days_alone() -> None:
    assert Span(FIRST, FIRST + timedelta(days=1)).sql("_timestamp") == (
        "(_timestamp >= TIMESTAMP'2026-01-01T00:00:00+00:00' AND _timestamp < TIMESTAMP'2026-01-03T00:00:00+00:00')"
    )


def test_the_last_day_of_all_calendars_is_no_day_that_a_range_ends_behind() -> None:
    wanted = request_backfill([], None, at("9999-12-31T23:00:00+00:00"))
    assert wanted.last == date(9999, 12, 30)
    assert wanted.span.sql("t") == BackfillRequest((), None, None).span.sql("t")
    assert "'9999-12-31T00:00:00+00:00'" in wanted.span.sql("t")


def test_neighbours_are_done_together_up_to_so_many_rows() -> None:
    found = [day("chess", 0), day("chess", 1), day("chess", 3), day("chess", 4, 99), day("go", 1)]
    assert {game: [numbers(one) for one in mine] for game, mine in chunks(found, 30).items()} == {
        "chess": [[0, 1, 3], [4]],
        "go": [[1]],
    }


def test_over_a_day_that_is_done_nothing_is_done_together() -> None:
    found = [day("chess", 0), day("chess", 1, state=DONE), day("chess", 2), day("chess", 3, state=DayState.FAILED)]
    (chess,) = chunks(found, 1000).values()
    assert [(numbers(one), one.rows) for one in chess] == [([0], 10), ([2, 3], 20)]
    assert chess[1].span == Span(FIRST + timedelta(days=2), FIRST + timedelta(days=3))


@given(days_of_games, st.integers(1, 30), st.integers(1, 5))
def test_every_day_that_is_not_done_is_in_one_wave_and_a_wave_has_each_game_once(
    found: list[Day], most_rows: int, most: int
) -> None:
    by_game = chunks(found, most_rows)
    for mine in by_game.values():
        for chunk in mine:
            assert len(chunk.days) == 1 or chunk.rows <= most_rows
            # between its first and its last day there is none that is done
            assert [
                one for one in found if one.game == chunk.game and chunk.span.first <= one.day <= chunk.span.last
            ] == [*chunk.days]
    planned = waves(by_game, most, 2 * most_rows)
    assert all(len({chunk.game for chunk in wave}) == len(wave) <= most for wave in planned)
    assert all(len(wave) == 1 or sum(chunk.rows for chunk in wave) <= 2 * most_rows for wave in planned)
    done = [one for wave in planned for chunk in wave for one in chunk.days]
    assert sorted(done, key=lambda one: (one.game, one.day)) == [one for one in found if one.state is not DONE]
    # a game's commits follow each other
    assert all(
        [one.day for one in done if one.game == game] == sorted(one.day for one in done if one.game == game)
        for game in by_game
    )


def test_games_with_most_left_come_first() -> None:
    found = [day("chess", 0), *(day("go", at) for at in range(3)), day("tennis", 0), day("tennis", 1)]
    planned = waves(chunks(found, 1), 2, 1000)
    assert [[chunk.game for chunk in wave] for wave in planned] == [["go", "tennis"], ["go", "chess"], ["go", "tennis"]]


def test_the_newest_backfill_that_was_asked_for_the_same_goes_on_unless_it_is_done() -> None:
    wanted, other = BackfillRequest(("chess",), FIRST, None), BackfillRequest((), FIRST, None)
    old = Backfill("old", wanted, BEGUN, (day("chess", 0),))
    new = Backfill("new", wanted, BEGUN + timedelta(hours=1), (day("chess", 0, state=DONE), day("chess", 1)))
    newest = Backfill("newest", wanted, BEGUN + timedelta(hours=2), (day("chess", 0, state=DONE),))
    assert find_unfinished_backfill([old, new], wanted) == new
    assert find_unfinished_backfill([old, newest, new], wanted) is None
    assert (find_unfinished_backfill([old], other), find_unfinished_backfill([], wanted)) == (None, None)


def test_what_is_done_stays_done_and_what_bronze_has_besides_comes_to_it() -> None:
    done = Day("chess", FIRST, 10, DONE, DayCounts(10, 9, 1), 1.0)
    before = Backfill(
        "one", BackfillRequest((), None, None), BEGUN, (done, day("chess", 1, state=DayState.FAILED), day("go", 7))
    )
    found = (day("go", 0), day("chess", 1, 12), day("chess", 0, 11))
    assert to_do(found, before) == (done, day("chess", 1, 12), day("go", 0))
    assert to_do(found, None) == (day("chess", 0, 11), day("chess", 1, 12), day("go", 0))


def test_a_chunk_that_is_done_gives_each_day_its_counts_and_its_share_of_the_time() -> None:
    chunk = BackfillChunk("chess", (day("chess", 0), day("chess", 1)))
    counts = {FIRST: DayCounts(30, 20, 10), FIRST + timedelta(days=2): DayCounts(10, 10, 0)}
    assert complete_days(chunk, counts, 4.0) == (
        Day("chess", FIRST, 10, DONE, DayCounts(30, 20, 10), 3.0),
        # nothing of it is read yet
        Day("chess", FIRST + timedelta(days=1), 10, DONE, DayCounts(), 0.0),
        # it came after the plan
        Day("chess", FIRST + timedelta(days=2), 0, DONE, DayCounts(10, 10, 0), 1.0),
    )
    assert [one.seconds for one in complete_days(chunk, {}, 4.0)] == [0.0, 0.0]


def test_days_that_failed_say_why() -> None:
    (one,) = mark_failed([day("chess", 0)], "APPROVAL_NEEDED", "Approve it.")
    assert (one.state, one.condition, one.sentence) == (DayState.FAILED, "APPROVAL_NEEDED", "Approve it.")


def test_an_estimate_goes_by_what_is_known_of_each_game_and_by_the_longest_of_them() -> None:
    found = [day("chess", 0, 100), day("go", 0, 100), day("tennis", 0, 100), day("chess", 1, 900, DONE)]
    assert estimate(found, {}, 2) is None
    # tennis is as the others are: 0.2 s a row
    assert estimate(found, {"chess": 0.1, "go": 0.3}, 2) == pytest.approx(30.0)
    assert estimate(found, {"chess": 0.1, "go": 0.3}, 9) == pytest.approx(30.0)
    assert estimate(found, {"chess": 0.1, "go": 0.3}, 1) == pytest.approx(60.0)
    assert estimate([], {"chess": 0.1}, 2) == 0.0


def test_what_is_left_of_a_backfill_takes_as_long_as_what_is_done_took() -> None:
    done = Day("chess", FIRST, 10, DONE, DayCounts(10, 10, 0), 5.0)
    left = [day("chess", 1), day("go", 1, 10), day("go", 2, 10, DayState.FAILED)]
    backfill = Backfill("one", BackfillRequest((), None, None), BEGUN, (done, *left))
    assert (backfill.seconds_left(1), backfill.seconds_left(4)) == (15.0, 10.0)
    assert (backfill.rows(DONE), backfill.rows(DayState.WAITING, DayState.FAILED), backfill.is_done) == (10, 30, False)
    assert Backfill("one", backfill.asked, BEGUN, tuple(left)).seconds_left(1) is None


def test_a_range_that_bronze_does_not_have_is_told_with_the_one_that_it_has() -> None:
    wanted = BackfillRequest((), FIRST, None)
    with pytest.raises(RangeInvalid) as refused:
        require_found([], wanted, Span(date(2025, 1, 1), date(2025, 12, 31)))
    assert (refused.value.message, refused.value.remedy) == (
        "Bronze has no record of these games in the range from 2026-01-01 without a last one.",
        "It has records from 2025-01-01 to 2025-12-31: name a range in there.",
    )
    with pytest.raises(RangeInvalid, match="says of which day"):
        require_found([], wanted, None)
    require_found([day("chess", 0)], wanted, None)


def test_what_bronze_has_is_told_by_game_and_day_and_what_is_of_no_day_apart() -> None:
    rows: dict[str, dict[date | None, int]] = {
        "go": {FIRST: 3, None: 2},
        "chess": {FIRST + timedelta(days=9): 4, FIRST: 1},
        "tennis": {None: 5},
    }
    there = BronzeDays.of(rows, BackfillRequest((), None, FIRST))
    assert there.days == (day("chess", 0, 1), day("go", 0, 3))
    assert (there.span, there.undated) == (Span(FIRST, FIRST + timedelta(days=9)), {"go": 2, "tennis": 5})
    assert BronzeDays.of({"tennis": {None: 5}}, BackfillRequest((), None, None)).span is None
