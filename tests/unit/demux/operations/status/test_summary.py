"""What the facts of a root mean."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.control.games_and_rounds import TaskOutcome
from demux.core.registry.protocol import SubjectVersion
from demux.operations.status.facts import BronzeFile, Facts, QuarantinedRows, TableFacts
from demux.operations.status.model import GameHealth, GameStatus, Status
from demux.operations.status.summary import status_of, waiting_since
from tests.support.data.statuses import NOW, busy, known, record

MINUTE = timedelta(minutes=1)
LOST = ("CHECKPOINT_LOST", "It is gone. Rebuild it.")


def of(facts: Facts, **reasons: str) -> Status:
    return status_of("/root", facts, NOW, reasons)


def only(facts: Facts, **reasons: str) -> GameStatus:
    (game,) = of(facts, **reasons).games
    return game


def test_a_root_without_anything_has_no_games_and_no_lag() -> None:
    status = of(Facts())
    assert (status.games, status.rounds, status.clusters, status.problems) == ((), (), (), ())
    assert (status.lag_rows, status.rate) == (0, 0)


def test_rows_in_bronze_that_are_neither_in_silver_nor_in_quarantine_wait() -> None:
    game = only(
        Facts(
            games={"go": known("go")},
            bronze={"go": (BronzeFile(NOW - 9 * MINUTE, 100), BronzeFile(NOW - 3 * MINUTE, 20))},
            silver={"go": TableFacts(2, 2048, 95)},
            quarantine=[QuarantinedRows("MALFORMED_PAYLOAD", "go", 5), QuarantinedRows("MALFORMED_WRAPPER", None, 7)],
        )
    )
    assert (game.bronze, game.lag_rows, game.state) == (120, 20, GameHealth.BEHIND)
    assert game.quarantined == {"MALFORMED_PAYLOAD": 5}
    assert game.lag_s(NOW) == 180


def test_a_game_without_waiting_rows_is_up_to_date_and_its_lag_is_zero_seconds() -> None:
    game = only(
        Facts(
            games={"go": known("go")},
            bronze={"go": (BronzeFile(NOW, 5),)},
            silver={"go": TableFacts(1, 1, 5)},
        )
    )
    assert (game.state, game.lag_rows, game.waiting_since, game.lag_s(NOW)) == (GameHealth.CURRENT, 0, None, 0)


def test_a_table_that_is_ahead_of_what_was_read_of_bronze_makes_no_negative_lag() -> None:
    facts = Facts(games={"go": known("go")}, bronze={"go": (BronzeFile(NOW, 5),)}, silver={"go": TableFacts(1, 1, 9)})
    assert only(facts).lag_rows == 0


@pytest.mark.parametrize(
    "facts",
    [
        Facts(games={"go": known("go")}, bronze=None),
        Facts(games={"go": known("go")}, quarantine=None),
        Facts(games={"go": known("go")}, silver={"go": TableFacts(1, 1, None)}),
        Facts(games={"go": known("go")}, unreadable=frozenset({"go"})),
    ],
    ids=["bronze", "quarantine", "no counts in the log", "silver"],
)
def test_what_cannot_be_read_makes_a_lag_that_is_not_known_and_not_one_of_zero(facts: Facts) -> None:
    game = only(facts)
    assert (game.lag_rows, game.waiting_since, game.lag_s(NOW)) == (None, None, None)
    assert of(facts).lag_rows is None


def test_without_a_lag_the_last_task_says_whether_rows_are_left() -> None:
    left = [record("go", 60, outcome=TaskOutcome.BEHIND)]
    assert only(Facts(games={"go": known("go")}, bronze=None, records=left)).state is GameHealth.BEHIND


def test_a_failed_game_has_its_error_until_a_task_ends_well_and_remembers_it_after() -> None:
    failed = [record("go", 58), record("go", 59, error=LOST)]
    game = only(Facts(games={"go": known("go")}, records=failed))
    assert game.state is GameHealth.FAILED
    assert game.failure is not None
    assert (game.failure.condition, game.failure.sentence, game.failure.at) == (*LOST, NOW - MINUTE)
    assert game.last_success == NOW - 2 * MINUTE
    healed = only(Facts(games={"go": known("go")}, records=[*failed, record("go", 60)]))
    assert (healed.state, healed.failure, healed.last_success) == (GameHealth.CURRENT, None, NOW)
    assert healed.last_failure == game.failure


def test_a_game_that_is_not_admitted_waits_with_the_reason_of_the_plan() -> None:
    facts = Facts(games={"go": known("go", None)})
    assert only(facts, go="games.limit is 0").state is GameHealth.WAITING
    assert only(facts, go="games.limit is 0").reason == "games.limit is 0"


def test_a_game_that_is_in_bronze_alone_waits_for_a_plan() -> None:
    game = only(Facts(bronze={"go": (BronzeFile(NOW - MINUTE, 5),)}))
    assert (game.state, game.lag_rows, game.lag_s(NOW)) == (GameHealth.WAITING, 5, 60)
    assert game.reason == "no plan has it yet: the next round makes one"


def test_the_rate_is_of_the_last_fifteen_minutes() -> None:
    records = [record("go", 44, 10_000), record("go", 46, 500), record("go", 60, 400)]
    assert only(Facts(records=records)).rate == 1.0


def test_versions_are_those_of_the_schemas_that_are_known_in_the_games_own_registry() -> None:
    facts = Facts(
        records=[record("go", ids=(7, 9, 0))],
        uses={
            ("default", 7): [SubjectVersion("a", 6), SubjectVersion("go-value", 3)],
            ("default", 8): [SubjectVersion("go-value", 4)],
            ("default", 9): [SubjectVersion("any", 1)],
            ("other", 0): [SubjectVersion("any", 5)],
        },
    )
    assert only(facts).versions == (1, 3)


def test_a_games_share_is_of_the_work_of_all_tasks_on_record() -> None:
    records = [record("go", 59, seconds=1), record("chess", 59, seconds=6), record("go", 60, seconds=1)]
    assert {game.game: game.share for game in of(Facts(records=records)).games} == {"chess": 0.75, "go": 0.25}


def test_rounds_have_the_sums_of_their_tasks_and_the_lag_that_there_was_counted_back_from_now() -> None:
    status = of(
        Facts(
            games={"go": known("go"), "chess": known("chess")},
            records=[
                record("go", 50, 100, seconds=1),
                record("chess", 50, 10, seconds=2),
                record("go", 60, 30, seconds=3),
                record("chess", 60, 0, error=LOST),
            ],
            bronze={
                "go": (
                    BronzeFile(NOW - 20 * MINUTE, 100),
                    BronzeFile(NOW - 15 * MINUTE, 25),
                    BronzeFile(NOW - 5 * MINUTE, 5),
                ),
                "chess": (BronzeFile(NOW - 20 * MINUTE, 10), BronzeFile(NOW - MINUTE, 40)),
            },
            silver={"go": TableFacts(1, 1, 130), "chess": TableFacts(1, 1, 10)},
        )
    )
    first, last = status.rounds
    assert (first.games, first.failed, first.rows, first.seconds, first.rate) == (2, 0, 110, 3, None)
    assert (last.games, last.failed, last.rows, last.rate) == (2, 1, 30, 30 / 600)
    # 25 rows of go were left behind by the first; the last left chess's 40
    assert (first.lag_rows, last.lag_rows) == (25, 40)


def test_clusters_have_their_games_and_how_they_are() -> None:
    status = of(
        Facts(
            games={
                "go": known("go", "a"),
                "chess": known("chess", "b"),
                "xo": known("xo", "a"),
                "new": known("new", None),
            },
            records=[record("go", error=LOST, seconds=2), record("xo", seconds=3)],
            bronze={"xo": (BronzeFile(NOW, 4),)},
        )
    )
    assert [(c.name, c.games, c.failed, c.behind, c.lag_rows, c.seconds) for c in status.clusters] == [
        ("a", 2, 1, 1, 4, 5.0),
        ("b", 1, 0, 0, 0, 0.0),
    ]


def test_a_failure_that_games_share_is_one_problem_and_comes_before_who_waits() -> None:
    names = ("a", "b", "c", "d")
    status = of(
        Facts(
            games={name: known(name, None if name == "d" else "x") for name in names},
            records=[record("a", error=("X", "Why.")), record("b", error=LOST), record("c", error=LOST)],
        ),
        d="games.limit is 3",
    )
    assert [(one.condition, one.games) for one in status.problems] == [
        ("CHECKPOINT_LOST", ("b", "c")),
        ("X", ("a",)),
        ("waiting", ("d",)),
    ]


@pytest.mark.thorough
def test_ten_thousand_games_keep_few_points_each() -> None:
    assert max(len(game.recent) for game in busy(200).games) == 31
    many = busy(10_000, rounds=12)
    assert len(many.games) == 10_000
    assert max(len(game.recent) for game in many.games) == 10


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 500))
def test_the_oldest_waiting_row_is_in_the_file_that_has_the_first_row_not_done(rows: list[int], done: int) -> None:
    came = [BronzeFile(NOW + at * MINUTE, count) for at, count in enumerate(rows)]
    one_by_one = [arrival.at for arrival in came for _ in range(arrival.rows)]
    expected = one_by_one[done] if done < len(one_by_one) else None
    assert waiting_since(came, done) == expected
