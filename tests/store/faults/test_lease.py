"""A lock as an object: one holder at a time, and the next one after a holder that died."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from demux.core.errors import ConcurrentChange
from demux.core.storage.files import Storage
from demux.core.storage.lease import Lease, LeaseHeld
from tools.servers.stores.azure import ACCOUNT

PERIOD_S = 1.0


class Stopped(Lease):
    """A holder that renews nothing, as a process that is stopped or dead."""

    def _renew(self) -> bool:
        return False


@pytest.fixture(params=["folder", "bucket", "azure", "gcs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    if request.param == "folder":
        return Storage(), str(tmp_path / "lease")
    if request.param == "azure":
        return request.getfixturevalue(
            "in_azure"
        ), f"abfss://demux@{ACCOUNT}.dfs.core.windows.net/{tmp_path.name}/lease"
    if request.param == "gcs":
        return request.getfixturevalue("in_gcs"), f"gs://demux/{tmp_path.name}/lease"
    return request.getfixturevalue("in_store"), f"s3://demux/{tmp_path.name}/lease"


def lease(place: tuple[Storage, str], holder: str, kind: type[Lease] = Lease) -> Lease:
    return kind(*place, holder, lambda: "2026-01-01 12:00", PERIOD_S)


@contextmanager
def held(taken: Lease) -> Iterator[Lease]:
    taken.take(wait=False)
    try:
        yield taken
    finally:
        taken.free()


def test_a_second_one_is_told_who_has_it_and_since_when_and_gets_it_afterwards(place: tuple[Storage, str]) -> None:
    second = lease(place, "second")
    with held(lease(place, "first")) as first:
        began = time.monotonic()
        with pytest.raises(LeaseHeld) as refused:
            second.take(wait=False)
        assert (refused.value.state.holder, refused.value.state.since) == ("first", "2026-01-01 12:00")
        # as soon as it is seen alive
        assert time.monotonic() - began < PERIOD_S
        # longer than a period: it is renewed
        time.sleep(1.5 * PERIOD_S)
        first.check()
    assert second.take(wait=False)
    second.check()
    second.free()
    assert not second.take(wait=False)
    second.free()
    with pytest.raises(ConcurrentChange):
        second.check()


def test_one_of_many_has_it_at_a_time(place: tuple[Storage, str]) -> None:
    inside, most = [0], [0]

    def work(number: int) -> str:
        mine = lease(place, f"holder {number}")
        mine.take(wait=True)
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        mine.check()
        inside[0] -= 1
        mine.free()
        return f"holder {number}"

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(work, range(6))) == [f"holder {number}" for number in range(6)]
    assert most == [1]


def test_after_a_holder_that_died_the_next_one_waits_a_period_and_no_longer(place: tuple[Storage, str]) -> None:
    dead = lease(place, "dead", Stopped)
    dead.take(wait=False)
    began = time.monotonic()
    with held(lease(place, "next")):
        assert PERIOD_S <= time.monotonic() - began < 2 * PERIOD_S


def test_a_holder_that_was_stopped_for_too_long_knows_it_and_does_not_free_the_lock_of_the_next(
    place: tuple[Storage, str],
) -> None:
    stopped, following = lease(place, "stopped", Stopped), lease(place, "next")
    stopped.take(wait=False)
    stopped.check()
    with held(following):
        with pytest.raises(ConcurrentChange):
            stopped.check()
        stopped.free()
        with pytest.raises(LeaseHeld):
            lease(place, "third").take(wait=False)
        following.check()


def test_waiting_ends_when_the_command_is_to_stop(place: tuple[Storage, str]) -> None:
    stop = threading.Event()
    stop.set()
    with held(lease(place, "first")), pytest.raises(KeyboardInterrupt):
        lease(place, "second").take(wait=True, stop=stop)
