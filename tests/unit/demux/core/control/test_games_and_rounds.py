"""What earlier rounds say of the next one."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from demux.core.control.games_and_rounds import Load, RoundHistory, TaskOutcome, TaskRecord

NOW = datetime(2025, 3, 30, 1, 59, 59, tzinfo=timezone.utc)


def record(
    game: str, minutes: int, rows: int = 10, seconds: float = 1.0, outcome: TaskOutcome = TaskOutcome.DONE
) -> TaskRecord:
    ended = NOW + timedelta(minutes=minutes)
    return TaskRecord("round", game, outcome, rows, rows, 0, (1,), seconds, None, None, ended)


def test_a_load_is_the_median_of_the_last_five_rounds() -> None:
    records = [record("chess", minute, 10 * minute, seconds=minute) for minute in range(7)]
    history = RoundHistory(-1, {}).after(records, 3)
    assert history.recent["chess"] == tuple(Load(10 * minute, minute) for minute in (2, 3, 4, 5, 6))
    assert history.loads == {"chess": Load(40, 4)}
    assert (history.bronze_version, history.last) == (3, {"chess": records[-1]})


def test_rounds_that_failed_or_found_nothing_are_no_measure() -> None:
    records = [
        record("chess", 0, seconds=2.0),
        record("chess", 1, rows=0, seconds=0.1),
        record("chess", 2, seconds=99.0, outcome=TaskOutcome.FAILED),
        record("go", 3, outcome=TaskOutcome.FAILED),
    ]
    assert RoundHistory(-1, {}).after(records, 0).loads == {"chess": Load(10, 2.0)}


def test_records_that_come_in_two_parts_leave_the_same_history() -> None:
    records = [record("chess" if minute % 3 else "go", minute, seconds=minute) for minute in range(12)]
    at_once = RoundHistory(-1, {}).after(records, 7)
    assert RoundHistory(-1, {}).after(records[:5], 2).after(records[5:], 7) == at_once


def test_the_last_end_is_of_any_game() -> None:
    assert RoundHistory(-1, {}).last_end is None
    assert RoundHistory(-1, {}).after([record("go", 5), record("chess", 2)], 0).last_end == NOW + timedelta(minutes=5)
