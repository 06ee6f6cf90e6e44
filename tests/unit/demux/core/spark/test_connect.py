"""A batch that a Connect server offers, and this process writes: both ends, over one session's properties."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from demux.core.spark.connect import Handover, _offering

PATIENCE_S = 30.0


class SharedConf:
    """The properties of a session, as both of its processes see them."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def get(self, name: str, default: str) -> str:
        return self.held.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.held[name] = value


class SharedSession:
    """A session with its temporary views."""

    def __init__(self) -> None:
        self.conf = SharedConf()
        self.views: dict[str, object] = {}

    def table(self, name: str) -> object:
        return self.views[name]


class OfferedFrame:
    """A micro-batch at the server."""

    def __init__(self, session: SharedSession, rows: str) -> None:
        self.sparkSession = session
        self.rows = rows

    def createOrReplaceTempView(self, name: str) -> None:
        self.sparkSession.views[name] = self.rows


def talk(handle: Callable[[DataFrame, int], None], *batches: int) -> SharedSession:
    """Offer the batches one after the other, and look for them meanwhile."""
    session = SharedSession()
    handover = Handover(cast(SparkSession, session), handle)
    offer = handover.offer()

    def server() -> None:
        for batch in batches:
            offer(cast(DataFrame, OfferedFrame(session, f"rows {batch}")), batch)

    with ThreadPoolExecutor(1) as pool:
        offered = pool.submit(server)
        stop = threading.Event()
        offered.add_done_callback(lambda _: stop.set())
        while not stop.wait(0.001):
            handover.look()
        offered.result(PATIENCE_S)
    return session


def test_each_batch_is_written_once_and_the_server_waits_for_it() -> None:
    seen: list[tuple[object, int]] = []
    talk(lambda frame, batch: seen.append((frame, batch)), 0, 1, 7)
    assert seen == [("rows 0", 0), ("rows 1", 1), ("rows 7", 7)]


def test_a_batch_that_fails_here_fails_the_query_and_no_further_one_is_written() -> None:
    seen: list[int] = []

    def fail(_: DataFrame, batch: int) -> None:
        seen.append(batch)
        raise OSError("no space")

    with pytest.raises(RuntimeError, match="the process that writes batch 3 failed"):
        talk(fail, 3, 4)
    assert seen == [3]


def test_a_process_that_gives_no_sign_loses_its_batch() -> None:
    session = SharedSession()
    with pytest.raises(RuntimeError, match="the process that writes batch 5 is gone"):
        _offering("demux_x", 0.001, 0.01)(cast(DataFrame, OfferedFrame(session, "rows")), 5)
    assert session.conf.held == {"demux_x.offer": "5"}


def test_the_answer_to_an_older_batch_is_none_to_this_one() -> None:
    session = SharedSession()
    session.conf.set("demux_x.answer", "4 done")
    with pytest.raises(RuntimeError, match="is gone"):
        _offering("demux_x", 0.001, 0.01)(cast(DataFrame, OfferedFrame(session, "rows")), 5)
