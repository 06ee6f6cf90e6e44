"""A command whose Spark Connect server goes away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demux.cli.run.run import reconnecting
from demux.core.errors import SessionLost, StorageFailed

LOST = SessionLost("The server went away.", "Run again.")


def test_work_that_is_done_is_not_done_again() -> None:
    tries: list[int] = []
    reconnecting(lambda _: tries.append(1))
    assert tries == [1]


def test_a_lost_session_is_replaced_once(capsys: pytest.CaptureFixture[str]) -> None:
    tries: list[int] = []

    def work(_: Callable[[], None]) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise LOST

    reconnecting(work)
    assert len(tries) == 2
    assert capsys.readouterr().out == f"{LOST}\nconnecting again …\n"


def test_a_server_that_stays_away_is_an_error_the_second_time() -> None:
    tries: list[int] = []

    def work(_: Callable[[], None]) -> None:
        tries.append(1)
        raise LOST

    with pytest.raises(SessionLost):
        reconnecting(work)
    assert len(tries) == 2


def test_each_session_that_worked_is_replaced() -> None:
    tries: list[int] = []

    def work(worked: Callable[[], None]) -> None:
        tries.append(1)
        if len(tries) < 6:
            worked()
            raise LOST

    reconnecting(work)
    assert len(tries) == 6


def test_another_failure_is_left_alone() -> None:
    with pytest.raises(StorageFailed):
        reconnecting(lambda _: (_ for _ in ()).throw(StorageFailed("Full.", "Free space.")))
