"""A root that the bronze stage fills from a broker, and what it then holds; Delta tables are read without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from bronze_ingest.run import ingest
from demux.core.errors import DemuxError
from demux.core.reports import IngestReport
from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings
from demux.core.streaming.query import TAKE_ALL, Every, Trigger
from tests.support.flow.root import wrapper

GAME = "chess"


def of_chess(payload: bytes) -> bytes:
    """A record's value: the payload of game `GAME`, schema id 7."""
    return wrapper(GAME, 7, payload)


@dataclass(frozen=True, slots=True)
class Intake:
    """A root of this test's own, of which only bronze is looked at.

    Attributes:
        spark: the session.
        layout: where the tables are.
        kafka: the settings of section kafka.
    """

    spark: SparkSession
    layout: Layout
    kafka: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def at(cls, spark: SparkSession, folder: Path, bootstrap: str, *topics: str, **kafka: Any) -> Intake:
        named = {"topics": list(topics)} if topics else {}
        common = {"bootstrap_servers": bootstrap, "connect_timeout_s": 10.0}
        return cls(spark, Layout(str(folder / "root")), {**common, **named, **kafka})

    def ingest(
        self,
        trigger: Trigger = TAKE_ALL,
        *,
        accept_gaps: bool = False,
        on_batch: Callable[[IngestReport], None] = lambda _: None,
        **kafka: Any,
    ) -> IngestReport:
        settings = Settings.model_validate(
            {"root": self.layout.root, "source": {"kind": "kafka"}, "kafka": {**self.kafka, **kafka}}
        )
        return ingest(self.spark, settings, trigger, accept_gaps=accept_gaps, on_batch=on_batch)

    def refused(self, kind: type[DemuxError], **kafka: Any) -> DemuxError:
        """The error of a run."""
        with pytest.raises(kind) as failure:
            self.ingest(**kafka)
        assert type(failure.value) is kind
        return failure.value

    @contextmanager
    def streaming(self, **kafka: Any) -> Iterator[Future[IngestReport]]:
        """A stream that looks for records all the time while the block runs."""
        stop = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self.ingest, Every(0.1, stop), **kafka)
            try:
                yield running
            finally:
                stop.set()

    def bronze(self, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of bronze in these columns, sorted; by default the record ids and payloads."""
        return _rows(self.layout.bronze, columns or ("record_id", "payload"))

    def quarantine(self, *columns: str) -> list[tuple[Any, ...]]:
        return _rows(self.layout.quarantine, columns)

    def gaps(self, *columns: str) -> list[tuple[Any, ...]]:
        return _rows(self.layout.gaps, columns or ("topic", "partition", "first_offset", "end_offset", "reason"))


def _rows(table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    if not DeltaTable.is_deltatable(table):
        return []
    read = DeltaTable(table).to_pyarrow_table(columns=list(columns))
    return sorted(zip(*(read[name].to_pylist() for name in columns), strict=True), key=repr)
