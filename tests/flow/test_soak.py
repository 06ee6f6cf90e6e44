"""A minute of `make soak`: a live stream and repairs beside it, some of them killed; the ledger balances."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.flow.process import Command
from tests.soak.acts import ALWAYS, Odds
from tests.soak.processes import Ended
from tests.soak.sending import Load
from tests.soak.soak import Plan, Soak

pytestmark = pytest.mark.timeout(900)

_ODDS = Odds(ALWAYS, killed=0.3, kill_within_s=3.0)
_MINUTE = Plan(60.0, workers=1, odds=_ODDS, load=Load(games=1, hostile=1, events=60))


def test_repairs_beside_a_live_stream_leave_a_ledger_that_balances(tmp_path: Path, command: Command) -> None:
    soak = Soak(tmp_path, _MINUTE, print)
    soak.live()

    def run(words: Sequence[str]) -> Ended:
        said = command(*words, *soak.options)
        return Ended(said.code, said.out + said.err, 0.0)

    soak.rest(run)
    assert soak.failures == [], soak.summary()

    # and it would have been noticed
    chess = DeltaTable(soak.root / "silver" / "chess")
    soak.forgotten["bob"] = frozenset(chess.to_pyarrow_table(columns=["_record_id"])["_record_id"].to_pylist())
    chess.update(updates={"user_name": "'somebody else'"})
    told = "\n".join(soak.mistakes())
    assert "/bronze still has" in told
    assert "became 'somebody else'" in told
