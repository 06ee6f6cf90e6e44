"""A request of a round that fails: whichever it is, after one more round every table is as if nothing had happened."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import pytest
from pyspark.sql import SparkSession

import demux.core.root.layout
from demux.core.errors import DemuxError, StorageFailed
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.store import access_of
from demux.core.storage.files import Storage
from demux.pipeline.engines import decode_of
from producer.run import ProduceReport
from tests.support.flow.fleet import without_errors
from tests.support.flow.fleet_oracle import check_everything
from tests.support.flow.root import Root, Rows, rows
from tests.support.store.stored import access_at, bucket_in, copied, spark_reaches, stored
from tools.servers.stores.proxy import PASSING, Fault, Request, StoreProxy
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

BUCKET = "faulty"
TIMEOUT_S = 4.0
SILENCE_S = 5.0
# of the requests of a round, in `make test`; the faults take turns
STRIDE = 37

Decide = Callable[[Request], Fault | None]
Everything = Mapping[str, tuple[list[str], Rows]]


@dataclass(slots=True)
class Rounds:
    """A root that is copied in the store again and again, for one round each.

    Attributes:
        before: the root, to be copied, not changed.
        after: what its next round leaves.
        store: the server.
        proxy: before the server.
        asked: the requests of a round that nothing disturbs.
    """

    before: Root
    after: Everything
    store: ObjectStore
    proxy: StoreProxy
    asked: list[Request] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def fresh(self) -> Root:
        """Return a copy of the root, reached by the proxy."""
        return copied(self.before, self.store, f"{BUCKET}/{next(self._numbers)}", self.proxy.url)

    def requests(self) -> list[Request]:
        """Return the requests of a round that nothing disturbs."""
        root, asked = self.fresh(), list[Request]()

        def note(request: Request) -> None:
            asked.append(request)

        with self.deciding(note):
            began = time.monotonic()
            without_errors(root.run())
            print(f"{time.monotonic() - began:.1f} s", len(asked), Counter(request.kind for request in asked))
        self.check(root)
        return asked

    @contextmanager
    def deciding(self, decide: Decide) -> Iterator[None]:
        """Let this happen to requests while the block runs."""
        self.proxy.decide = decide
        try:
            yield
        finally:
            self.proxy.decide = lambda _: None

    def fail(self, fault: Fault, position: int, *, stays: bool = False) -> str:
        """Let the request at this position of a round fail so, and finish by one more round; return what it said.

        With `stays`, all requests from there on fail.
        """
        seen, lock = count(), threading.Lock()

        def decide(_: Request) -> Fault | None:
            with lock:
                at = next(seen)
            return fault if at == position or (stays and at > position) else None

        return self.disturb(decide, f"{fault.value} at {position}", goes_on=position % 2 == 1)

    def disturb(self, decide: Decide, what: str, *, goes_on: bool = False) -> str:
        """Let this happen to the requests of a round, and finish by one more round; return what the first one said.

        The second one is of the same process, or of a new one.
        """
        root, hit, said = self.fresh(), list[Request](), list[str]()

        def decide_and_note(request: Request) -> Fault | None:
            fault = decide(request)
            if fault is not None:
                hit.append(request)
            return fault

        place = root.workplace()
        decode = decode_of(place, root.settings.round_engine)
        with self.deciding(decide_and_note):
            try:
                said += [str(end.error) for end in root.run(place, decode).ended if end.error is not None]
            except DemuxError as error:
                said.append(str(error))
        outcome = f"{what}: {hit[:1]} of {len(hit)}: {said or 'done'}"
        print(outcome, flush=True)
        try:
            without_errors(root.run(place, decode) if goes_on else root.run())
            self.check(root)
        except Exception as error:
            raise AssertionError(outcome) from error
        return "; ".join(said)

    def check(self, root: Root) -> None:
        """Fail where the tables are not as they should be."""
        assert root.everything() == self.after
        for table, key in (
            (root.here.rounds, ("round_id", "game_name")),
            (root.here.games, ("game_name",)),
            (root.here.schemas, ("registry", "schema_id", "subject", "version")),
        ):
            kept = Counter(tuple(row[name] for name in key) for row in rows(table))
            assert [each for each, times in kept.items() if times > 1] == [], table


@pytest.fixture(scope="module")
def rounds(spark: SparkSession, object_store: ObjectStore) -> Iterator[Rounds]:
    proxy = StoreProxy(object_store.url)
    proxy.silence_s = SILENCE_S
    bucket_in(object_store, BUCKET)
    reports: list[ProduceReport] = []
    with pytest.MonkeyPatch.context() as patch, spark_reaches(spark, Storage(access_at(proxy.url)), BUCKET):
        patch.setenv("STORE_KEY", ACCESS_KEY)
        patch.setenv("STORE_SECRET", SECRET_KEY)
        patch.setattr(demux.core.root.layout, "access_of", lambda *args: replace(access_of(*args), timeout_s=TIMEOUT_S))
        before = stored(spark, object_store, f"{BUCKET}/before", proxy.url)
        reports.append(before.produce(events=60, games=2, versions=1, fault_rate=0.2))
        without_errors(before.run())
        # one game is new, one has a new version
        reports.append(before.produce(events=60, games=3, versions=2, fault_rate=0.2))
        after = copied(before, object_store, f"{BUCKET}/after", proxy.url)
        without_errors(after.run())
        check_everything(after, reports)
        made = Rounds(before, after.everything(), object_store, proxy)
        made.asked += made.requests()
        yield made
    proxy.close()


def test_whichever_request_of_a_round_fails_the_tables_are_right_after_one_more(rounds: Rounds) -> None:
    assert {"GET", "HEAD", "LIST", "PUT", "conditional PUT"} <= {request.kind for request in rounds.asked}
    for number, position in enumerate(range(0, len(rounds.asked), STRIDE)):
        rounds.fail(PASSING[number % len(PASSING)], position)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: fault.value)
def test_each_request_of_a_round_fails_once_in_each_way(rounds: Rounds, fault: Fault) -> None:
    for position in range(len(rounds.asked)):
        rounds.fail(fault, position)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_credentials_that_expire_in_the_middle_of_a_round_are_named_and_the_next_run_goes_on(
    rounds: Rounds, share: float
) -> None:
    said = rounds.fail(Fault.EXPIRED, int(share * len(rounds.asked)), stays=True)
    assert "credentials" in said
    assert "nothing is lost" in said


def test_credentials_that_only_read_are_refused_with_the_permission_that_they_lack(rounds: Rounds) -> None:
    writing = {"PUT", "conditional PUT", "begin upload", "bulk DELETE", "DELETE"}
    ours = "/_delta_log/"
    said = rounds.disturb(lambda request: Fault.DENIED if request.kind in writing else None, "read-only")
    assert "credentials" in said
    said = rounds.disturb(
        lambda request: Fault.DENIED if request.kind in writing and ours in request.path else None, "read-only tables"
    )
    assert "`s3:PutObject`" in said


def test_a_prefix_that_is_throttled_for_some_time_makes_a_round_later_and_nothing_else(rounds: Rounds) -> None:
    until: list[float] = []

    def decide(request: Request) -> Fault | None:
        if "/silver/chess/" not in request.path:
            return None
        until.append(time.monotonic() + 1.5)
        return Fault.SLOW_DOWN if time.monotonic() < until[0] else None

    assert rounds.disturb(decide, "throttled") == ""
    assert len(until) > 3


def test_a_bucket_that_is_not_there_is_said_so(rounds: Rounds) -> None:
    root = stored(rounds.before.spark, rounds.store, "nowhere/root", rounds.proxy.url)
    root.produce(events=10, games=1, versions=1, fault_rate=0.0)
    shutil.move(root.folder.parent, rounds.store.folder / BUCKET / "moved")
    moved = rounds.store.folder / BUCKET / "moved" / "root"
    changes = {name: {"path": str(moved / name)} for name in ("source", "registry")}
    with pytest.raises(StorageFailed, match="the bucket does not exist") as failed:
        stored(root.spark, rounds.store, "nowhere/root", rounds.proxy.url, **changes).run()
    assert failed.value.remedy == "Make the bucket, or correct `root` in the settings."


def test_a_table_of_schemas_that_cannot_be_read_is_not_taken_for_an_empty_one(rounds: Rounds) -> None:
    place = rounds.fresh().workplace()
    schema_id = rows(rounds.before.here.schemas)[0]["schema_id"]
    with (
        rounds.deciding(lambda request: Fault.DENIED if "/control/schemas/" in request.path else None),
        pytest.raises(StorageFailed),
    ):
        place.schemas.lookup({SchemaRef(schema_id)}, "chess")
    assert place.schemas.lookup({SchemaRef(schema_id)}, "chess").keys() == {SchemaRef(schema_id)}
    kept = place.layout.storage.table(place.layout.schemas)
    assert kept.version() == rounds.before.layout.storage.table(rounds.before.layout.schemas).version()
