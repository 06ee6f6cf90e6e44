"""Roots with their tables, in one session: events come in, rounds are run by the engine of the settings and timed."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.parts.decoding import timed
from benchmarks.support.events import Events, made_events
from benchmarks.support.naive import run_all
from benchmarks.support.points import PLOTS
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.folder import FolderRegistry
from demux.core.reports import GameReport, IngestReport
from demux.core.settings.games import GamesSettings
from demux.core.settings.settings import Decoder, Engine, RegistrySettings, RunSettings, Settings, Sink
from demux.core.settings.source import SourceSettings
from demux.core.settings.store import StoreSettings
from demux.pipeline.context import place_of
from demux.pipeline.engines import decode_of
from demux.pipeline.observers.observer import Observer
from demux.pipeline.round import run_round
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Task
from producer.delta_sink import DeltaSink
from producer.schemas import games as first_games

# of a round, and of the naive design: what the machine has
PARALLELISM = 2

Watch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of one round, by what they were spent on, and the rows that were decoded.

    Attributes:
        bronze: taking in.
        silver: decoding all games, by the engine.
        rest: finding out what there is to do, the plan, the control tables.
        games: how many had something to do.
        rows: how many were decoded.
    """

    bronze: float
    silver: float
    rest: float
    games: int
    rows: int

    @property
    def round(self) -> float:
        """All of it."""
        return self.bronze + self.silver + self.rest


class BenchRoot:
    """One root; it remembers between rounds what a command with `--every` remembers."""

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        registry: Path,
        engine: Engine,
        decoder: Decoder = Decoder.AUTO,
        source: Path | None = None,
        store: StoreSettings | None = None,
        sink: Sink = Sink.AUTO,
    ) -> None:
        self.spark = spark
        self.settings = Settings(
            root=root,
            source=SourceSettings(path=None if source is None else str(source)),
            store=store or StoreSettings(),
            registry=RegistrySettings(path=str(registry)),
            games=GamesSettings(limit=1_000_000),
            decoder=decoder,
            run=RunSettings(engine=engine, parallelism=PARALLELISM, sink=sink),
        )
        self._place = place_of(self.settings, spark, threading.Event())
        self._decode = decode_of(self._place, self.settings.round_engine)
        self._sink = DeltaSink(self.settings.source_path)
        self.layout = self._place.layout

    def send(self, events: Events) -> None:
        """Put events into the source table."""
        events.send(self._sink)

    def round(self, watch: Watch = nullcontext) -> Spent:
        """Run a round; `watch` is entered around the engine's part of it."""
        times = Times()

        def decode(tasks: tuple[Task, ...]) -> Iterator[TaskEnd[GameReport]]:
            with watch():
                began = time.monotonic()
                ended = list(self._decode(tasks))
                times.silver = time.monotonic() - began
            yield from ended

        began = times.began_s = time.monotonic()
        ended = run_round(self._place, decode, observer=times).ended
        total = time.monotonic() - began
        errors = [str(end.error) for end in ended if end.error]
        assert not errors, errors[:3]
        rows = sum(end.report.rows_in for end in ended if end.report)
        return Spent(times.bronze, times.silver, total - times.bronze - times.silver, len(ended), rows)

    def naive(self, games: int) -> float:
        """Return the seconds of a round of the naive design over the same bronze, for the first so many games."""
        registry = FolderRegistry(Path(self.settings.registry_path))
        names = [game.name for game in first_games(games)]
        schemas = {name: compile_schema(registry.versions(name)[-1]) for name in names}
        return timed(
            lambda: run_all(self.spark, self.layout.bronze, f"{self.settings.root}/naive", schemas, PARALLELISM)
        )

    def commits(self) -> int:
        """Return how many commits the silver tables and quarantine have together."""
        return sum(DeltaTable(table).version() + 1 for table in (*self.silver(), *self._quarantine()))

    def silver(self) -> tuple[str, ...]:
        """Return the paths of the silver tables."""
        return tuple(str(path) for path in sorted(Path(self.settings.root, "silver").glob("*")))

    def _quarantine(self) -> tuple[str, ...]:
        path = self.layout.quarantine
        return (path,) if DeltaTable.is_deltatable(path) else ()


class Times(Observer):
    """The seconds of a round's parts."""

    began_s = bronze = silver = 0.0

    def ingested(self, report: IngestReport) -> None:
        self.bronze = time.monotonic() - self.began_s


@dataclass
class Bench:
    """The session, the folder for all roots, and what was made there so far."""

    spark: SparkSession
    folder: Path
    plots: Path = PLOTS
    _roots: dict[str, BenchRoot] = field(default_factory=dict)
    _events: dict[tuple[int, int, int], Events] = field(default_factory=dict)

    def root(self, name: str, engine: Engine = Engine.FLEET, decoder: Decoder = Decoder.AUTO) -> BenchRoot:
        """Return the root of this name, made now if it was not."""
        if name not in self._roots:
            folder = str(self.folder / name)
            self._roots[name] = BenchRoot(self.spark, folder, self.folder / "registry", engine, decoder)
        return self._roots[name]

    def root_in(self, uri: str, store: StoreSettings, sink: Sink = Sink.AUTO) -> BenchRoot:
        """Return a new root in a store, whose source is on the disk."""
        source = self.folder / f"source of {uri.rpartition('/')[2]}"
        registry = self.folder / "registry"
        return BenchRoot(self.spark, uri, registry, Engine.FLEET, Decoder.AUTO, source, store, sink)

    def forget(self, name: str) -> None:
        """Remove the root from the disk."""
        self._roots.pop(name, None)
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def events(self, games: int, rows_each: int, versions: int = 1) -> Events:
        """Return about so many events of each game, made now if they were not."""
        wanted = (games, rows_each, versions)
        if wanted not in self._events:
            self._events[wanted] = made_events(self.folder / "registry", games, rows_each, versions)
        return self._events[wanted]

    def forget_events(self) -> None:
        """Free the memory of all events."""
        self._events.clear()
