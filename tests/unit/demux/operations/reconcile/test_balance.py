from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from demux.operations.reconcile.balance import (
    MEANING,
    Account,
    Grain,
    Ledger,
    LedgerDifference,
    LedgerFault,
    RecordLocations,
    SourceAccount,
    SourceLocations,
    Tally,
    accounts,
    differences,
    intake,
    keep_confirmed,
)

# how often a record may stand somewhere
TIMES = st.integers(0, 3)


@st.composite
def any_places(draw: st.DrawFn) -> RecordLocations:
    bronze = draw(TIMES)
    return RecordLocations(bronze, draw(st.integers(0, bronze)), draw(TIMES), draw(TIMES), draw(TIMES), draw(TIMES))


def placed(bronze: int, silver: int, quarantine: int, due: int = 0, dropped: int = 0) -> RecordLocations:
    """A record while nothing else is at work."""
    return RecordLocations(bronze, due, silver, quarantine, quarantine, dropped)


def tally(
    game: str | None, places: RecordLocations | SourceLocations, records: int = 1, batch: int | None = 0
) -> Tally:
    return Tally(game, places, records, batch, batch)


def test_a_record_in_exactly_one_place_is_right() -> None:
    assert [placed(1, 1, 0, due=1).kind, placed(1, 0, 1, due=1).kind, placed(1, 0, 0).kind] == [None, None, None]


def test_a_record_that_a_batch_under_way_has_written_already_is_right() -> None:
    assert [placed(1, 1, 0).kind, placed(1, 0, 1).kind] == [None, None]


def test_each_wrong_place_has_its_kind_and_its_number_of_rows() -> None:
    found = [
        (places.kind, places.missing, places.surplus)
        for places in (
            placed(1, 0, 0, due=1),
            placed(1, 2, 0, due=1),
            placed(1, 0, 2, due=1),
            placed(1, 1, 1, due=1),
            placed(0, 1, 0),
            placed(0, 0, 2),
        )
    ]
    assert found == [
        (LedgerFault.LOST, 1, 0),
        (LedgerFault.DOUBLED, 0, 1),
        (LedgerFault.DOUBLED, 0, 1),
        (LedgerFault.IN_BOTH, 0, 1),
        (LedgerFault.STRAY, 0, 1),
        (LedgerFault.STRAY, 0, 2),
    ]


def test_a_record_that_its_source_holds_twice_must_be_in_silver_twice() -> None:
    assert placed(2, 2, 0, due=2).kind is None
    assert (placed(2, 1, 0, due=2).kind, placed(2, 1, 0, due=2).missing) == (LedgerFault.LOST, 1)
    assert placed(2, 1, 1, due=2).kind is None


def test_a_row_that_a_replay_moves_while_it_is_read_is_right() -> None:
    # taken out of quarantine between the two looks: it is in silver already, or was not yet when silver was read
    assert [RecordLocations(1, 1, 1, 1, 0).kind, RecordLocations(1, 1, 0, 1, 0).kind] == [None, None]
    # put there by a batch that ends in between
    assert RecordLocations(1, 0, 0, 0, 1).kind is None
    assert RecordLocations(1, 1, 1, 1, 1).kind is LedgerFault.IN_BOTH


def test_a_dropped_record_is_not_lost_and_counts_once_wherever_else_it_is() -> None:
    gone = placed(1, 0, 0, due=1, dropped=1)
    assert (gone.kind, gone.removed, gone.waiting, gone.missing) == (None, 1, 0, 0)
    # a drop that was killed; one that is under way; a record that a replay or a rebuild has moved since
    both = [placed(1, 0, 1, due=1, dropped=1), RecordLocations(1, 1, 0, 1, 0, 1), placed(1, 1, 0, due=1, dropped=1)]
    assert [(one.kind, one.quarantined, one.removed, one.waiting) for one in both] == [
        (None, 1, 0, 0),
        (None, 0, 1, 0),
        (None, 0, 0, 0),
    ]
    # of what is not in bronze any more, nothing is told
    assert (placed(0, 0, 0, dropped=1).kind, placed(0, 0, 0, dropped=1).removed) == (None, 0)


def test_a_dropped_record_does_not_hide_its_copy_that_is_lost_or_doubled() -> None:
    assert (placed(2, 0, 0, due=2, dropped=1).kind, placed(2, 0, 0, due=2, dropped=1).missing) == (LedgerFault.LOST, 1)
    assert (placed(1, 2, 0, due=1, dropped=1).kind, placed(1, 2, 0, due=1, dropped=1).surplus) == (
        LedgerFault.DOUBLED,
        1,
    )


@given(any_places())
def test_every_account_adds_up_whatever_is_wrong(places: RecordLocations) -> None:
    somewhere = places.silver + places.quarantined + places.removed + places.waiting + places.missing
    assert places.bronze + places.surplus == somewhere
    assert min(places.surplus, places.quarantined, places.removed, places.waiting, places.missing) >= 0
    assert (places.kind is None) == (not places.surplus and not places.missing)


@given(st.lists(st.tuples(st.sampled_from(["chess", "go"]), any_places(), st.integers(0, 2)), max_size=30))
def test_accounts_and_differences_tell_of_every_row(found: list[tuple[str, RecordLocations, int]]) -> None:
    tallies = [tally(game, places, batch=batch if places.bronze else None) for game, places, batch in found]
    for grain in Grain:
        totals = accounts(tallies, grain)
        assert sum(account.bronze for account in totals) == sum(places.bronze for _, places, _ in found)
        assert sum(account.silver for account in totals) == sum(places.silver for _, places, _ in found)
        wrong = sum(account.missing + account.surplus for account in totals)
        assert wrong == sum(one.rows for one in differences(tallies))
        assert all(account.balances for account in totals) == (not differences(tallies))


MISTAKES = ("lose", "double", "both", "stray", "none", "wait")


@given(st.lists(st.tuples(st.sampled_from(MISTAKES), st.booleans()), max_size=40), st.integers())
def test_records_that_are_misplaced_at_random_give_exactly_these_differences(
    records: list[tuple[str, bool]], seed: int
) -> None:
    tallies = []
    for mistake, is_bad in records:
        silver, quarantine = (0, 1) if is_bad else (1, 0)
        match mistake:
            case "lose":
                places = placed(1, 0, 0, due=1)
            case "double":
                places = placed(1, 2 * silver, 2 * quarantine, due=1)
            case "both":
                places = placed(1, 1, 1, due=1)
            case "stray":
                places = placed(0, silver, quarantine)
            case "wait":
                places = placed(1, 0, 0)
            case _:
                places = placed(1, silver, quarantine, due=1)
        tallies.append(tally("chess", places))
    random.Random(seed).shuffle(tallies)
    made = Counter(mistake for mistake, _ in records)
    expected = {
        LedgerFault.LOST: made["lose"],
        LedgerFault.DOUBLED: made["double"],
        LedgerFault.IN_BOTH: made["both"],
        LedgerFault.STRAY: made["stray"],
    }
    assert {one.kind: one.rows for one in differences(tallies)} == {kind: n for kind, n in expected.items() if n}
    waiting = sum(account.waiting for account in accounts(tallies, Grain.GAME))
    assert waiting == made["wait"]


def test_an_account_of_each_round_comes_in_order_and_strays_have_none() -> None:
    tallies = [
        tally("go", placed(1, 1, 0, due=1), records=5, batch=1),
        tally("chess", placed(1, 0, 0, due=1), records=2, batch=10),
        tally("chess", placed(1, 0, 1, due=1), records=3, batch=9),
        tally("chess", placed(0, 1, 0), batch=None),
    ]
    assert accounts(tallies, Grain.ROUND) == (
        Account("chess", None, 0, 1, 0, 0, 0, 1),
        Account("chess", 9, 3, 0, 3, 0, 0, 0),
        Account("chess", 10, 2, 0, 0, 0, 2, 0),
        Account("go", 1, 5, 5, 0, 0, 0, 0),
    )


def test_differences_of_several_rounds_say_the_first_and_the_last() -> None:
    tallies = [
        Tally("chess", placed(1, 0, 0, due=1), 7, 3, 8),
        Tally("chess", placed(2, 0, 0, due=2), 1, 2, 2),
    ]
    (found,) = differences(tallies)
    assert (found.rows, found.first_batch, found.last_batch) == (9, 2, 8)


def test_what_the_source_never_gives_twice_must_not_be_taken_in_twice() -> None:
    assert (SourceLocations(2, 0, 0, 0, True).kind, SourceLocations(1, 1, 0, 0, True).kind) == (
        LedgerFault.TAKEN_TWICE,
        LedgerFault.TAKEN_TWICE,
    )
    assert SourceLocations(1, 0, 0, 0, True).kind is None


def test_a_table_may_hold_a_record_twice_and_then_it_is_taken_in_twice() -> None:
    assert [SourceLocations(2, 0, 2, 2, False).kind, SourceLocations(2, 0, 1, 2, False).kind] == [None, None]
    assert SourceLocations(3, 0, 2, 2, False).kind is LedgerFault.TAKEN_TWICE
    # what is not there any more says nothing
    assert SourceLocations(2, 0, 0, 0, False).kind is None


def test_a_record_before_where_bronze_stands_must_have_come_in() -> None:
    assert (SourceLocations(0, 0, 1, 1, False).kind, SourceLocations(1, 0, 2, 2, False).missing) == (
        LedgerFault.NOT_TAKEN_IN,
        1,
    )
    assert [SourceLocations(0, 1, 1, 1, False).kind, SourceLocations(0, 0, 0, 1, False).kind] == [None, None]


def test_the_intake_counts_records_with_and_without_a_position() -> None:
    tallies = [
        tally("chess", SourceLocations(1, 0, 1, 1, False), 8),
        tally(None, SourceLocations(0, 1, 1, 1, False), 2),
    ]
    assert intake(tallies, 5) == SourceAccount(8, 2, 15)
    assert intake(tallies, None) == SourceAccount(8, 2, None)


def test_a_record_of_the_source_that_was_dropped_came_in_and_counts_once() -> None:
    gone = SourceLocations(0, 0, 1, 1, False, dropped=1)
    assert (gone.kind, gone.removed) == (None, 1)
    # still in quarantine, or brought back; from Kafka, of which the source says nothing
    both = [
        SourceLocations(0, 1, 1, 1, False, 1),
        SourceLocations(1, 0, 0, 0, True, 1),
        SourceLocations(0, 0, 0, 0, True, 1),
    ]
    assert [(one.kind, one.removed) for one in both] == [(None, 0), (None, 0), (None, 1)]
    assert intake([tally(None, gone, 3), tally(None, both[0], 2)], 0) == SourceAccount(0, 2, 5, 3)
    # one of two copies
    assert (SourceLocations(0, 0, 2, 2, False, 1).kind, SourceLocations(0, 0, 2, 2, False, 1).missing) == (
        LedgerFault.NOT_TAKEN_IN,
        1,
    )


@given(st.builds(SourceLocations, TIMES, TIMES, TIMES, TIMES, st.booleans(), TIMES))
def test_what_is_told_of_the_source_never_counts_below_nothing(taken: SourceLocations) -> None:
    assert 0 <= taken.removed <= taken.dropped
    assert min(taken.surplus, taken.missing) >= 0


def test_every_kind_says_what_it_means() -> None:
    assert set(MEANING) == set(LedgerFault)


def test_a_difference_that_only_one_of_two_readings_finds_does_not_count() -> None:
    passing, other, real = (
        LedgerDifference(kind, game, 1, 0, 0)
        for kind, game in ((LedgerFault.STRAY, "chess"), (LedgerFault.STRAY, "go"), (LedgerFault.LOST, "chess"))
    )
    first, second = (Ledger(None, (), (one, real)) for one in (passing, other))
    assert keep_confirmed(first, second).differences == (real,)
    assert keep_confirmed(first, Ledger(None, (), (other,))).balances


def test_a_retired_record_balances_as_if_bronze_still_had_it() -> None:
    there, gone = RecordLocations(1, 1, 1, 0, 0), RecordLocations(1, 1, 1, 0, 0, retired=1)
    assert [there.kind, gone.kind] == [None, None]
    assert accounts([tally("chess", there, 3), tally("chess", gone, 4)], Grain.GAME) == (
        Account("chess", None, 3, 7, 0, 0, 0, 0, 0, 4),
    )
    lost = RecordLocations(1, 1, 0, 0, 0, retired=1)
    assert (lost.kind, lost.missing) == (LedgerFault.LOST, 1)


def test_a_forgotten_record_is_not_lost_while_bronze_still_has_it() -> None:
    half_done = RecordLocations(1, 1, 0, 0, 0, dropped=1)
    assert (half_done.kind, half_done.removed, half_done.waiting) == (None, 1, 0)


def test_what_was_retired_or_forgotten_came_in_once() -> None:
    retired, forgotten = SourceLocations(1, 0, 1, 1, True, retired=1), SourceLocations(0, 0, 1, 1, True, forgotten=1)
    still_there = SourceLocations(1, 0, 1, 1, True, forgotten=1)
    assert [retired.kind, forgotten.kind, still_there.kind] == [None, None, None]
    tallies = [tally("chess", retired, 2), tally(None, forgotten, 3), tally("chess", still_there, 5)]
    assert intake(tallies, 0) == SourceAccount(5, 0, 10, retired=2, forgotten=3)


def test_what_the_source_has_no_more_is_forgotten_as_often_as_it_was_there() -> None:
    assert [
        SourceLocations(0, 0, 0, 0, False, forgotten=2).erased,
        SourceLocations(1, 0, 0, 0, True, forgotten=1).erased,
    ] == [2, 0]
