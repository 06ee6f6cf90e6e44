"""A root from Python: what the command line shows, as values; a game's table in the library of the caller's choice."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demux.core.causes import Cause
from demux.core.control.games_and_rounds import Control
from demux.core.delta.scan import read_table
from demux.core.errors import GameUnknown
from demux.core.extras import on_databricks
from demux.core.names import names_of
from demux.core.root.layout import Layout, layout_of, logs_of, s3_access
from demux.core.root.lock import Access, hold_of, hold_root
from demux.core.schemas.registry_selection import Registries
from demux.core.settings.loading.loader import load, with_absolute_paths
from demux.core.settings.settings import Settings
from demux.core.storage.files import Storage
from demux.core.text import printable
from demux.operations.quarantine.filter import QuarantineFilter, require_game
from demux.operations.reconcile.balance import Grain
from demux.operations.status.model import Status
from demux.pipeline.status import require_root_without_spark, status_reader
from install_workflow.destroy.apply import require_whole

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from demux.operations.quarantine.records import QuarantineRecord
    from demux.operations.reconcile.balance import Ledger
    from demux.operations.status.newest_rows import SilverSample
    from demux.pipeline.round import Round
    from install_workflow.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class TableReader:
    """A Delta table of a root, which is read when a method is called."""

    path: str
    storage: Storage

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows as an Arrow table, in memory.

        Args:
            columns: names; None for all.

        Raises:
            TableUnsuited: the table has a feature that only Spark reads; use `spark`.
        """
        return read_table(self.storage, self.path, columns)

    def pandas(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the rows as a pandas frame; raises as `arrow`."""
        return self.arrow(columns).to_pandas()

    def polars(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return the rows as a Polars frame; raises as `arrow`, and where Polars is not installed."""
        import polars as pl

        frame = pl.from_arrow(self.arrow(columns))
        assert isinstance(frame, pl.DataFrame), "it comes from a table"
        return frame

    def spark(self, spark: SparkSession) -> DataFrame:
        """Return the table as a Spark frame; nothing is read yet."""
        from demux.core.catalog.spark_tables import read_table

        return read_table(spark, self.storage.address(self.path))

    def newest(self, rows: int, spark: SparkSession | None = None) -> SilverSample:
        """Return the newest rows of a silver table; reads only the files that may have one of them.

        Args:
            rows: how many at most.
            spark: a session, for a table with features that only Spark reads.

        Raises:
            TableUnsuited: there is no session, and only Spark reads the table.
        """
        from demux.operations.status.newest_rows import newest_rows, newest_rows_by_spark

        if spark is not None:
            return newest_rows_by_spark(spark, self.storage.address(self.path), rows)
        return newest_rows(self.storage, self.path, rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows for any library that takes Arrow's PyCapsule, such as DuckDB."""
        return self.arrow().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True)
class Root:
    """The tables below one folder or URI, and the settings of their games.

    Only `run` writes; it takes the root's lock. All other methods start no Spark and may run beside any command.
    """

    settings: Settings

    @staticmethod
    def open(
        root: str | None = None, settings_file: str | Path | None = None, changes: Mapping[str, object] | None = None
    ) -> Root:
        """Return the root with the settings that a command line has: defaults, the file, the environment, `changes`.

        Nothing is read but the file: the root need not be there.

        Args:
            root: a folder or URI (`s3://…`, `abfss://…`, `gs://…`); None for that of the settings.
            settings_file: path of a settings file; None for `demux.yml`, if there is one.
            changes: values by dotted key, such as `{"games.limit": 5}`.

        Raises:
            SettingsInvalid: mistakes in any of them, all at once.
        """
        overrides = {**(changes or {}), **({} if root is None else {"root": root})}
        file = None if settings_file is None else Path(settings_file)
        return Root(with_absolute_paths(load(file, os.environ, overrides, None)))

    @property
    def layout(self) -> Layout:
        """Where the root's tables are."""
        return layout_of(self.settings)

    def status(self) -> Status:
        """Return what failed, which games wait, and where every record is: what `demux status` prints.

        Raises:
            RemovalUnfinished: a removal of tables was interrupted.
            SettingsInvalid: only Spark opens the root's tables.
        """
        return self.status_reader()()

    def status_reader(self) -> Callable[[], Status]:
        """Return a reader of the status; each further call reads only what is new. Raises as `status`."""
        require_whole(self.layout)
        return status_reader(self.settings)

    def games(self) -> tuple[str, ...]:
        """Return the exact names of the games that are known, in bronze or on record, sorted; raises as `status`."""
        return tuple(game.game for game in self.status().games)

    def silver(self, game: str) -> TableReader:
        """Return the game's silver table.

        Raises:
            GameUnknown: the game has none.
        """
        path = self.layout.silver(names_of(game).key)
        if not self.layout.storage.table_exists(path):
            raise GameUnknown(
                f"There is no silver table of a game {printable(game)!r}.",
                "See `demux status` for the games; names are exact. `demux run` makes the tables.",
                game=game,
            )
        return TableReader(path, self.layout.storage)

    def quarantine(
        self,
        game: str | None = None,
        causes: Collection[Cause] = (),
        most: int = 100,
        since: datetime | None = None,
    ) -> tuple[QuarantineRecord, ...]:
        """Return the newest records in quarantine, the newest first.

        Args:
            game: the exact name; None for all games, and for records without one.
            causes: the causes that are meant; none for all.
            most: how many records at most.
            since: quarantined then or later (UTC).

        Raises:
            GameUnknown: the game is not known.
            TableUnsuited: the table has a feature that only Spark reads.
        """
        from demux.operations.quarantine.reader import QuarantineReader, games_of

        layout = require_root_without_spark(self.settings, "quarantine is read without Spark")
        if game is not None:
            require_game(game, games_of(layout))
        found = QuarantineReader(layout).newest(QuarantineFilter(game, tuple(causes), since=since), most)
        return found[1]

    def plan(self, spark: SparkSession | None = None, warn: Callable[[str], None] = lambda _: None) -> Plan:
        """Return which game would run where, what would change, and which games wait; as `demux plan` of this machine.

        Args:
            spark: a session, for a root whose tables only Spark opens.
            warn: takes a sentence, where a registry cannot be asked.

        Raises:
            PlanRefused: the plan would end more games than the settings allow.
            TableUnsuited: there is no session, and only Spark opens the root's tables.
        """
        from demux.core.schemas.registry_selection import list_registered_or_warn
        from install_workflow.planning.plan import left_out
        from install_workflow.planning.round_plan import preview_round

        registered = list_registered_or_warn(self.settings, Registries(self.settings, os.environ), warn)
        plan = preview_round(spark, self.settings, Control(spark, self.layout), registered.games).plan
        return replace(plan, waiting=(*plan.waiting, *left_out(registered)))

    def reconcile(
        self, games: Sequence[str] | None = None, grain: Grain = Grain.GAME, spark: SparkSession | None = None
    ) -> Ledger:
        """Return the account of every record, from the tables alone; as `demux reconcile`.

        Args:
            games: exact names; None for all.
            grain: an account of each game, or of each round of each game.
            spark: a session, for tables with features that only Spark reads.

        Raises:
            GameUnknown: a game is not known.
            TableUnsuited: there is no session, and only Spark reads a table.
        """
        from demux.operations.reconcile.reconcile import reconcile
        from demux.pipeline.read_offsets import game_offsets, source_offsets

        layout, source = self.layout, source_offsets(spark, self.settings)
        return reconcile(spark, layout, game_offsets(spark, layout), source, games, grain)

    def session(self) -> SparkSession:
        """Return the Spark session of this process, or a new one with Delta that reaches the root as the settings say.

        Raises:
            RuntimeMissing: no Java that this Spark runs on, or Spark did not start.
        """
        from demux.core.streaming.session import session

        return session(self.settings.spark, logs_of(self.settings.root), s3_access(self.settings))

    def run(self, spark: SparkSession, *, wait: bool = False) -> Round:
        """Return what one round did: bronze takes in what is new, and each game with new rows is decoded.

        Args:
            spark: a session with Delta, such as `session()` returns.
            wait: wait while another command works on the root, instead of refusing.

        Raises:
            RootLocked: another command works on the root.
            DemuxError: bronze failed. A game's failure stops no other: it is in the round's `ended`.
        """
        from demux.pipeline.context import place_of
        from demux.pipeline.round import run_all

        root = self.settings.root
        held: Any = None if on_databricks() else hold_of(self.layout.storage, root, "run", Access.ALONE)
        with hold_root(root, "run", wait, Access.ALONE, held) as hold:
            require_whole(self.layout)
            place = place_of(self.settings, spark, threading.Event(), hold.tables)
            return run_all(place)
