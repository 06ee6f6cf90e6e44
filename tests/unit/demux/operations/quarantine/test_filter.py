from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from demux.core.causes import Cause, Stage
from demux.core.errors import GameUnknown
from demux.operations.quarantine.filter import QuarantineFilter, require_game

MOMENT = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=1)))


def test_a_choice_is_a_condition_in_sql_whatever_the_names_are() -> None:
    assert QuarantineFilter().sql() == "TRUE"
    everything = QuarantineFilter(
        "a'b${x}", (Cause.UNKNOWN_SCHEMA, Cause.SCHEMA_CONFLICT), None, MOMENT, MOMENT, "t/0/1"
    )
    assert everything.sql("q.") == (
        "q.game_name = 'a\\'b\\u0024{x}' AND q.stage = 'silver' AND q.cause IN ('UNKNOWN_SCHEMA', 'SCHEMA_CONFLICT') "
        "AND q.record_id = 't/0/1' AND q.quarantined_at >= TIMESTAMP'2026-03-01T11:00:00.000001+00:00' "
        "AND q.quarantined_at < TIMESTAMP'2026-03-01T11:00:00.000001+00:00'"
    )


def test_a_game_has_only_rows_of_stage_silver() -> None:
    assert QuarantineFilter("go", stage=Stage.BRONZE).sql() == "game_name = 'go' AND stage = 'silver'"
    assert QuarantineFilter(stage=Stage.BRONZE).sql() == "stage = 'bronze'"


def test_an_unknown_game_is_told_with_those_that_are_spelled_nearly_so() -> None:
    require_game(None, [])
    require_game("chess", ["chess"])
    with pytest.raises(GameUnknown) as caught:
        require_game("Ches\x1b", ["chess", "CHESS", "go", "checkers"])
    assert caught.value.message == "No game 'Ches\\\\u001b' is known. Did you mean 'CHESS' or 'checkers'?"
    assert caught.value.fields["near"] == ("CHESS", "checkers")
    with pytest.raises(GameUnknown) as caught:
        require_game("x" * 100_000, [])
    assert caught.value.fields["near"] == ()
