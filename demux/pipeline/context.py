"""A root that is held for one command, with all that its stages need."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from pyspark.sql import SparkSession

from demux.core.catalog.registration import look_again
from demux.core.control.games_and_rounds import Control
from demux.core.extras import on_databricks
from demux.core.names import names_of
from demux.core.reports import GameReport, IngestReport
from demux.core.root.layout import Layout, layout_of
from demux.core.root.lock import Hold, TableLock, no_lock, table_lock
from demux.core.schemas.registry_selection import RegisteredGames, Registries, game_schemas, list_registered_or_warn
from demux.core.schemas.store import GameRegistry, SchemaStore
from demux.core.settings.settings import Settings
from demux.core.streaming.query import TAKE_ALL, Trigger
from demux.pipeline.table_tags import TableTags


@dataclass(frozen=True, slots=True)
class HeldRoot:
    """A root that is locked for one command, without a session.

    Attributes:
        stop: once set, what is under way finishes.
        hold: the root, as the command holds it; None where the command only looks.
        warn: shows a sentence to the person who began the command.
    """

    settings: Settings
    schemas: SchemaStore
    control: Control
    stop: threading.Event
    hold: Hold | None = None
    warn: Callable[[str], None] = lambda _: None

    @property
    def visits(self) -> int:
        """How often other commands had the root in between: what was read of its tables before may be old."""
        return 0 if self.hold is None else self.hold.visits

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let other commands have the root while the block runs; between two steps, when nothing is under way.

        Raises:
            KeyboardInterrupt: as `demux.core.root.lock.Hold.away`.
        """
        before = self.visits
        with nullcontext() if self.hold is None else self.hold.away(self.stop):
            yield
        if self.visits != before:
            self.control.forget()
            self.schemas.forget()

    @property
    def is_wanted(self) -> bool:
        """Whether another command waits for the root, as far as that can be known."""
        return self.hold is not None and self.hold.is_wanted()

    def give_way(self) -> None:
        """Let other commands have the root for a moment; raises as `away`."""
        with self.away():
            pass

    @property
    def layout(self) -> Layout:
        """Where the root's tables are."""
        return layout_of(self.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext(HeldRoot):
    """A root that is locked for one command, and the session that works on it.

    Attributes:
        tables: keeps processes of the same command apart that write one table.
        tags: of the games' tables; None where the catalog has none.
    """

    spark: SparkSession
    tables: TableLock = no_lock
    tags: TableTags | None = None

    def check_source(self) -> None:
        """Return nothing when the source can be read; raises as the bronze stage would."""
        from bronze_ingest.source import check_source

        check_source(self.spark, self.settings)

    def registered(self) -> RegisteredGames:
        """Return the games that the registries name; none, and a warning, where a registry cannot be asked."""
        return list_registered_or_warn(self.settings, Registries(self.settings, os.environ), self.warn)

    def ingest(
        self,
        trigger: Trigger = TAKE_ALL,
        *,
        accept_gaps: bool = False,
        on_batch: Callable[[IngestReport], None] = lambda _: None,
    ) -> IngestReport:
        """Run the bronze stage."""
        from bronze_ingest.run import ingest

        return ingest(self.spark, self.settings, trigger, self.tables, accept_gaps=accept_gaps, on_batch=on_batch)

    def deserialize(self, game: str) -> GameReport:
        """Run the silver stage for one game."""
        from deserializer.stream.run import deserialize

        report = deserialize(self.spark, self.layout, self.schemas, game, self.settings.decoder, self.tables)
        self.tag(game)
        return report

    def tag(self, game: str) -> None:
        """Give the game's table its tags, if it is there."""
        table = self.layout.storage.address(self.layout.silver(names_of(game).key))
        if self.tags is not None and self.layout.storage.table_exists(table.path):
            self.tags.follow(table, game)


def place_of(
    settings: Settings, spark: SparkSession, stopping: threading.Event, tables: TableLock | None = None
) -> CommandContext:
    """Return what the stages need; `tables` where other processes write the same tables at the same time."""
    layout = layout_of(settings)
    schemas = SchemaStore(spark, layout, registry_of(settings, os.environ), tables)
    look_again()
    # a stream commits by Spark, and where it continues within a commit, by files
    return CommandContext(
        settings,
        schemas,
        Control(spark, layout),
        stopping,
        spark=spark,
        tables=tables or table_lock(settings.root),
        tags=TableTags(spark, schemas) if on_databricks() and layout.storage.catalog else None,
    )


def root_of(
    settings: Settings, spark: SparkSession | None, stopping: threading.Event, hold: Hold | None = None
) -> HeldRoot:
    """Return what works without a session, and reads with one, where it is given, what nothing else reads."""
    layout = layout_of(settings)
    tables = None if hold is None else hold.tables
    schemas = SchemaStore(spark, layout, registry_of(settings, os.environ), tables)
    return HeldRoot(settings, schemas, Control(spark, layout), stopping, hold)


def registry_of(settings: Settings, environ: Mapping[str, str]) -> Callable[[str], GameRegistry]:
    """Return what says which registry a game has, and what the settings say of its schemas."""
    registries = Registries(settings, environ)

    def of(game: str) -> GameRegistry:
        schemas = game_schemas(game, settings)
        return GameRegistry(schemas, lambda: registries.of(schemas.registry), settings.games.contract_of(game))

    return of
