"""Bronze beside the rounds: what a round learns of it, and when it is under way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from demux.core.reports import IngestReport
from demux.core.streaming.query import Every
from demux.pipeline.bronze_stream import BronzeStream

PATIENCE_S = 30.0
OnBatch = Callable[[IngestReport], None]


def batch(rows: int) -> IngestReport:
    return IngestReport(rows, rows, 0)


class Source:
    """Stands for the bronze stage: each query takes in its batches, then waits for its end, or fails."""

    def __init__(self, *queries: list[int | Exception]) -> None:
        self.queries = list(queries)
        self.began = 0
        self.under_way = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def ingest(self, trigger: Every, on_batch: OnBatch) -> None:
        steps = self.queries[self.began] if self.began < len(self.queries) else []
        self.began += 1
        self.under_way.release()
        try:
            for step in steps:
                if isinstance(step, Exception):
                    raise step
                on_batch(batch(step))
            assert trigger.stop.wait(PATIENCE_S)
        finally:
            self.ended.release()


@pytest.fixture
def seen() -> list[IngestReport]:
    return []


@pytest.fixture
def started() -> Iterator[Callable[..., BronzeStream]]:
    made: list[BronzeStream] = []

    def start(source: Source, clock: Callable[[], float] = lambda: 0.0) -> BronzeStream:
        made.append(BronzeStream(source.ingest, 1.0, clock))
        return made[-1]

    yield start
    for each in made:
        each.stop()


Started = Callable[..., BronzeStream]


def test_a_round_learns_what_came_in_since_the_last_one_each_batch_once(
    started: Started, seen: list[IngestReport]
) -> None:
    source = Source([3, 4])
    bronze = started(source)
    assert bronze.take(seen.append) == batch(0)
    assert source.under_way.acquire(timeout=PATIENCE_S)
    found = batch(0)
    while found.rows_in < 7:
        assert bronze.wait(PATIENCE_S)
        more = bronze.take(seen.append)
        found = batch(found.rows_in + more.rows_in)
    assert (found, seen) == (batch(7), [batch(3), batch(4)])
    assert not bronze.wait(0.0)


def test_nothing_is_under_way_once_it_is_stopped_and_the_next_round_starts_it_again(
    started: Started, seen: list[IngestReport]
) -> None:
    source = Source([], [5])
    bronze = started(source)
    bronze.take(seen.append)
    assert source.under_way.acquire(timeout=PATIENCE_S)
    bronze.stop()
    assert source.ended.acquire(blocking=False)
    bronze.stop()
    bronze.take(seen.append)
    assert bronze.wait(PATIENCE_S)
    assert (bronze.take(seen.append), source.began) == (batch(5), 2)


def test_what_ended_the_query_is_raised_once_after_all_that_it_took_in(
    started: Started, seen: list[IngestReport]
) -> None:
    source = Source([2, ValueError("gone")], [6])
    bronze = started(source)
    bronze.take(seen.append)
    assert source.ended.acquire(timeout=PATIENCE_S)
    assert bronze.wait(PATIENCE_S)
    assert bronze.take(seen.append) == batch(2)
    assert bronze.wait(PATIENCE_S)
    with pytest.raises(ValueError, match="gone"):
        bronze.take(seen.append)
    assert source.began == 1
    bronze.take(seen.append)
    assert bronze.wait(PATIENCE_S)
    assert bronze.take(seen.append) == batch(6)


def test_an_old_query_is_started_again_so_that_it_asks_for_topics_and_secrets(
    started: Started, seen: list[IngestReport]
) -> None:
    source, now = Source([], []), [0.0]
    bronze = started(source, lambda: now[0])
    for seconds, begun in ((0.0, 1), (299.0, 1), (301.0, 2), (302.0, 2)):
        now[0] = seconds
        bronze.take(seen.append)
        if begun > source.began:
            assert source.under_way.acquire(timeout=PATIENCE_S)
        while source.began < begun:
            assert source.under_way.acquire(timeout=PATIENCE_S)
        assert source.began == begun


def test_it_is_stopped_when_its_block_ends_and_left_alone_when_the_process_must_end_at_once(
    seen: list[IngestReport],
) -> None:
    source = Source()
    with BronzeStream(source.ingest, 1.0).running() as bronze:
        bronze.take(seen.append)
    assert source.ended.acquire(blocking=False)

    finish = threading.Event()

    def busy(trigger: Every, on_batch: OnBatch) -> None:
        source.under_way.release()
        assert finish.wait(PATIENCE_S)

    bronze = BronzeStream(busy, 1.0)

    def interrupted() -> None:
        with bronze.running():
            bronze.take(seen.append)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    finish.set()
    bronze.stop()
