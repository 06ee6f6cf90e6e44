"""A batch that a Connect server offers, and this process writes: both ends, over the temporary views of one session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from demux.core.spark.connect import Handover, _offering

PATIENCE_S = 30.0


class SharedSession:
    """A session with its temporary views, as both of its processes see them; it lets no property be set."""

    def __init__(self) -> None:
        self.views: dict[str, Frame] = {}

    def table(self, name: str) -> Frame:
        return self.views[name]

    def range(self, end: int) -> Frame:
        return Frame(self, f"range {end}")

    def say(self, view: str, word: str) -> None:
        self.views[view] = Frame(self, "range 0", (word,))


@dataclass(frozen=True)
class Frame:
    """A frame: a micro-batch at the server, or a message whose word is its column."""

    sparkSession: SharedSession
    rows: str
    columns: tuple[str, ...] = ()

    def toDF(self, *columns: str) -> Frame:
        return replace(self, columns=columns)

    def createOrReplaceTempView(self, name: str) -> None:
        self.sparkSession.views[name] = self


def talk(handle: Callable[[DataFrame, int], None], *batches: int) -> SharedSession:
    """Offer the batches one after the other, and look for them meanwhile."""
    session = SharedSession()
    handover = Handover(cast(SparkSession, session), handle)
    offer = handover.offer()

    def server() -> None:
        for batch in batches:
            offer(cast(DataFrame, Frame(session, f"rows {batch}")), batch)

    with ThreadPoolExecutor(1) as pool:
        offered = pool.submit(server)
        stop = threading.Event()
        offered.add_done_callback(lambda _: stop.set())
        while not stop.wait(0.001):
            handover.look()
        offered.result(PATIENCE_S)
    return session


def test_each_batch_is_written_once_and_the_server_waits_for_it() -> None:
    seen: list[tuple[str, int]] = []
    talk(lambda frame, batch: seen.append((cast(Frame, frame).rows, batch)), 0, 1, 7)
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
    session.say("demux_x_answer", "nothing")
    session.say("demux_x_beat", "3")
    with pytest.raises(RuntimeError, match="the process that writes batch 5 is gone"):
        _offering("demux_x", 0.001, 0.01)(cast(DataFrame, Frame(session, "rows")), 5)
    assert session.table("demux_x_offer").columns == ("5",)


def test_the_answer_to_an_older_batch_is_none_to_this_one() -> None:
    session = SharedSession()
    session.say("demux_x_answer", "4 done")
    session.say("demux_x_beat", "3")
    with pytest.raises(RuntimeError, match="is gone"):
        _offering("demux_x", 0.001, 0.01)(cast(DataFrame, Frame(session, "rows")), 5)
