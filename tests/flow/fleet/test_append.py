"""Rows appended to quarantine and silver: whoever dies between two of its commits, and whoever comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from deltalake import DeltaTable

from demux import api
from demux.core.delta.bronze_games import position_id
from demux.core.errors import ConcurrentChange, TaskFailed
from demux.core.settings.settings import Engine
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.pipeline.engines import decode_of
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.file_table import SilverTable
from deserializer.silver.spark_quarantine import QuarantineBySpark
from deserializer.silver.spark_table import SilverBySpark
from deserializer.stream.run import deserialize
from tests.support.flow.crash import Crash
from tests.support.flow.fleet import EVENT, FLEET, STREAM, crash_after, without_errors
from tests.support.flow.root import Root, wrapper

BATCH = 4


@dataclass(frozen=True, slots=True)
class Writer:
    """An engine with a back end, and where it can die: after each of its commits."""

    run: Mapping[str, object]
    quarantine: tuple[type, str]
    silver: tuple[type, str]
    death: type[BaseException] = KeyboardInterrupt

    def dies(self, root: Root, effect: str) -> None:
        """Decode the game up to one of the commits."""
        owner, method = self.quarantine if effect == "quarantine" else self.silver
        place = Root.at(root.spark, root.folder, run=self.run).workplace()
        decode = place.deserialize if self.run is STREAM else lambda _: root.run(place, decode_of(place, Engine.FLEET))
        with crash_after(owner, method, self.death), pytest.raises((KeyboardInterrupt, TaskFailed)):
            decode("chess")


BY_SPARK = ((QuarantineBySpark, "append_rows"), (SilverBySpark, "append_rows"))
WRITERS = {
    "files": Writer({**FLEET, "sink": "files"}, (Quarantine, "append"), (SilverTable, "append")),
    "spark": Writer({**FLEET, "sink": "spark"}, *BY_SPARK),
    "stream": Writer(STREAM, *BY_SPARK, death=Crash),
}
# of both lanes: their streams say in other words where a batch ends
LANES = {("stream", "stream"), ("stream", "files")}
# in `make test` each writer dies once after each of its commits, and each comes next; all pairs are long
FIRST = {
    "quarantine": {*LANES, ("files", "spark"), ("spark", "stream")},
    # where only the checkpoint can be behind
    "silver": {("stream", "files"), ("files", "spark"), ("spark", "stream")},
}


def each_pair() -> Iterator[object]:
    for one in WRITERS:
        for then in WRITERS:
            for effect in ("quarantine", "silver"):
                marks = [pytest.mark.both_lanes] if (one, then) in LANES and effect == "quarantine" else []
                if (one, then) not in FIRST[effect]:
                    marks = [pytest.mark.long]
                yield pytest.param(one, then, effect, id=f"{one}-{effect}-{then}", marks=marks)


@dataclass(slots=True)
class Sender:
    """Sends records of one game, of which each second has the schema that comes next, and the last one is broken."""

    root: Root
    schemas: list[int] = field(default_factory=list)
    sent: int = 0

    def register(self) -> int:
        """Register another schema; the first one's fields."""
        self.schemas.append(self.root.register("chess", f"{EVENT} // {len(self.schemas)}"))
        return self.schemas[-1]

    def send(self) -> None:
        """Send a batch to bronze, half of it with a schema that nobody has yet."""
        known = self.schemas[-1]
        names = [self.root.message(self.schemas[0])(name=f"user {self.sent + number}") for number in range(BATCH)]
        records = [wrapper("chess", known + number % 2, name.SerializeToString()) for number, name in enumerate(names)]
        self.root.send([*records, wrapper("chess", known, b"\x0a\x09")], first_offset=self.sent)
        self.sent += BATCH + 1
        self.root.workplace().ingest()

    def as_decoded(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Return what silver and quarantine must have: id and name; id and cause."""
        good, bad = [], []
        for offset in range(self.sent):
            number = offset % (BATCH + 1)
            if number == BATCH or number % 2:
                bad.append((f"t/0/{offset}", "MALFORMED_PAYLOAD" if number == BATCH else "UNKNOWN_SCHEMA"))
            else:
                good.append((f"t/0/{offset}", f"user {offset}"))
        return sorted(good), sorted(bad)


def decode(root: Root, writer: Writer) -> None:
    """Decode the game as a new process does."""
    without_errors(Root.at(root.spark, root.folder, run={**writer.run, "retries": 0}).run())


def tables(root: Root) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    return (
        [(row["_record_id"], row["name"]) for row in root.silver("chess")],
        [(row["record_id"], row["cause"]) for row in root.quarantine()],
    )


@pytest.mark.parametrize(("one", "then", "effect"), list(each_pair()))
def test_whoever_comes_after_a_writer_that_died_loses_no_row_and_moves_none(
    root: Root, one: str, then: str, effect: str
) -> None:
    writer, next_writer = WRITERS[one], WRITERS[then]
    sender = Sender(root)
    sender.register()
    # at the beginning, and from a position on
    for _ in range(2):
        sender.send()
        writer.dies(root, effect)
        # what decodes now did not then, and is in quarantine
        sender.register()
        decode(root, next_writer)
        assert tables(root) == sender.as_decoded()
        assert api.Root(root.settings).reconcile().balances
    decode(root, writer)
    assert tables(root) == sender.as_decoded()


def test_where_no_fleet_reads_bronze_the_next_stream_goes_on_all_the_same(root: Root) -> None:
    sender = Sender(root)
    sender.register()
    sender.send()
    mapping = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    root.spark.sql(f"ALTER TABLE delta.`{root.layout.bronze}` SET TBLPROPERTIES ({mapping})")
    for _ in range(2):
        WRITERS["stream"].dies(root, "quarantine")
        sender.register()
        decode(root, WRITERS["stream"])
        assert tables(root) == sender.as_decoded()
        sender.send()
    assert len(root.silver("chess")) == BATCH


@pytest.mark.both_lanes
def test_the_position_is_in_the_table_whoever_decodes(root: Root) -> None:
    sender = Sender(root)
    sender.register()
    app_id, positions = "", []
    for name in ("stream", "files", "spark", "stream"):
        sender.send()
        decode(root, WRITERS[name])
        app_id = position_id(root.spark, root.layout)
        table = DeltaTable(root.silver_path("chess"))
        number = table.transaction_version(app_id)
        assert number is not None
        positions.append(BronzeOffset.of(number))
        sender.register()
        assert tables(root) == sender.as_decoded()
    newest = DeltaTable(root.layout.bronze).version() + 1
    assert positions == [BronzeOffset(version) for version in range(newest - 3, newest + 1)]


def test_a_process_that_was_stopped_while_another_went_on_writes_nothing_by_spark(root: Root) -> None:
    sender = Sender(root)
    sender.register()
    sender.send()
    decode(root, WRITERS["spark"])
    app_id = position_id(root.spark, root.layout)
    stopped, running = (SilverBySpark(root.spark, Storage(), root.silver_path("chess")) for _ in range(2))
    at = stopped.transaction(app_id)
    assert at is not None
    assert running.transaction(app_id) == at
    rows = root.spark.read.format("delta").load(root.silver_path("chess"))
    before = root.silver("chess")
    running.append_rows(rows.limit(0), app_id, at + 2)
    for version in (at + 1, at + 3):
        with pytest.raises(ConcurrentChange, match="Another process decoded rows"):
            stopped.append_rows(rows, app_id, version)
    # up to the same place
    stopped.append_rows(rows, app_id, at + 2)
    assert root.silver("chess") == before


def test_quarantine_is_written_by_spark_while_its_lock_is_held(root: Root) -> None:
    held: list[tuple[str, int, int]] = []

    def version() -> int:
        return DeltaTable(root.layout.quarantine).version() if DeltaTable.is_deltatable(root.layout.quarantine) else -1

    @contextmanager
    def lock(table: str) -> Iterator[None]:
        before = version()
        yield
        held.append((table, before, version()))

    sender = Sender(root)
    sender.register()
    for number in range(2):
        sender.send()
        deserialize(root.spark, root.layout, root.workplace().schemas, "chess", tables=lock)
        assert held[number:] == [(root.layout.quarantine, number - 1, number)]
