"""The soak of `make test-long` for a minute; and in `make test` its acts one after the other, without processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.soak.acts import ALWAYS, Act, Odds
from tests.soak.processes import Ended
from tests.soak.sending import Load
from tests.soak.soak import Plan, Runs, Soak
from tests.support.flow.process import Command

_LOAD = Load(games=1, hostile=1, events=60)
_MINUTE = Odds(ALWAYS, killed=0.3, kill_within_s=3.0)
# a replay comes at the end anyway; who kills a run, and what that leaves: tests/flow/streams/test_kill.py
_IN_TURN = Odds((Act.MAINTAIN, Act.FORGET, Act.BACKFILL), killed=0.0)


def test_repairs_between_rounds_leave_a_ledger_that_balances_and_a_mistake_is_noticed(
    tmp_path: Path, command: Command, seed: int
) -> None:
    soak = Soak(tmp_path, Plan(0.0, seed, odds=_IN_TURN, load=_LOAD), print)
    run = here(soak, command)
    soak.in_turn(run)
    soak.rest(run)
    assert soak.failures == [], soak.summary()
    assert (soak.done["maintain"], soak.done["forget"], soak.done["backfill"]) == (1, 1, 1)
    require_noticed(soak)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_repairs_beside_a_live_stream_some_of_them_killed_leave_a_ledger_that_balances(
    tmp_path: Path, command: Command, seed: int
) -> None:
    soak = Soak(tmp_path, Plan(60.0, seed, workers=1, odds=_MINUTE, load=_LOAD), print)
    soak.live()
    soak.rest(here(soak, command))
    assert soak.failures == [], soak.summary()
    require_noticed(soak)


def here(soak: Soak, command: Command) -> Runs:
    """Return what runs a command of the soak in this process."""

    def run(words: Sequence[str]) -> Ended:
        said = command(*words, *soak.options)
        return Ended(said.code, said.out + said.err, 0.0)

    return run


def require_noticed(soak: Soak) -> None:
    """Change the tables by hand, and check that the soak would have noticed."""
    chess = DeltaTable(soak.root / "silver" / "chess")
    soak.forgotten["bob"] = frozenset(chess.to_pyarrow_table(columns=["_record_id"])["_record_id"].to_pylist())
    chess.update(updates={"user_name": "'somebody else'"})
    text = "\n".join(soak.mistakes())
    assert "/bronze still has" in text
    assert "became 'somebody else'" in text
