"""A root's tables as the engines need them, by files or by Spark; and which of them take files."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pyspark.sql import SparkSession

from demux.core.delta.scan import only_spark_reads
from demux.core.errors import PositionLost, SettingsInvalid, TableLost, TableUnsuited
from demux.core.extras import deltalake
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.settings.settings import Sink
from demux.core.streaming.bronze_offset import START, BronzeOffset
from demux.core.streaming.checkpoints import read_checkpoint
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.file_table import SilverTable
from deserializer.silver.spark_quarantine import QuarantineBySpark
from deserializer.silver.spark_table import SilverBySpark

# a game's silver table, there or not yet: the first takes files, the second frames
GameTable = SilverTable | SilverBySpark
# the quarantine table, likewise
QuarantineTable = Quarantine | QuarantineBySpark


@dataclass(frozen=True, slots=True)
class Tables:
    """A root's tables as an engine opens them.

    Attributes:
        spark: the session.
        layout: where they are.
        app_id: of the transactions that are positions in this bronze.
        sink: who is to write.
        takes_files: whether files that Spark has not written are possible at all.
    """

    spark: SparkSession | None
    layout: Layout
    app_id: str
    sink: Sink
    takes_files: bool

    def silver(self, key: str) -> GameTable:
        """Return the game's table as it is now.

        Raises:
            TableUnsuited: it asks for Spark's writer, and the sink is `files`.
        """
        path = self.layout.silver(key)
        if self.takes_files:
            try:
                table = SilverTable.at(self.layout.storage, path)
                table.require_suited()
            except (TableUnsuited, deltalake.exceptions.DeltaError):
                # deltalake may not even be able to open it
                if self.sink is Sink.FILES:
                    raise
            else:
                return table
        if self.spark is None:
            raise only_spark_reads(path)
        return SilverBySpark(self.spark, self.layout.storage, path)

    def position(self, game: str, table: GameTable) -> BronzeOffset:
        """Return how far the game is decoded, as its table says, whichever engine decoded it.

        Raises:
            TableLost: there is no table, and a stream has written one.
            PositionLost: the table has rows, and no position.
        """
        number = table.transaction(self.app_id)
        if number is not None:
            return BronzeOffset.of(number)
        again = f"Run `demux rebuild --game {shlex.quote(game)}` to make it again from bronze"
        if table.exists:
            if table.has_rows():
                raise PositionLost(
                    f"The table {table.path} has rows, and does not say how far bronze is decoded into it.",
                    f"{again}, or put back the table that was there.",
                    table=table.path,
                )
        elif read_checkpoint(self.layout.storage, self.layout.silver_checkpoint(names_of(game).key)).done >= 0:
            raise TableLost(
                f"The table {table.path} is gone, and a stream has written it.",
                f"{again}, or put the table back.",
                table=table.path,
            )
        return START

    def quarantine(self, lock: TableLock) -> QuarantineTable:
        """Return the quarantine table; `lock` keeps other processes away while files are put into it."""
        if self.takes_files:
            return Quarantine(self.layout.storage, self.layout.quarantine, self.layout.dropped, self.app_id, lock)
        assert self.spark is not None, "or it is not asked for"
        return QuarantineBySpark(self.spark, self.layout, self.app_id, lock)


def find_interrupted_offset(quarantine: QuarantineTable, game: str, position: BronzeOffset) -> BronzeOffset | None:
    """Return up to where quarantine has the game's bad rows, if that is past the offset of its table; None otherwise.

    A writer died between its two commits then: the records up to there may be in one of the tables already.
    """
    bad = quarantine.position(names_of(game).key)
    return bad if bad is not None and bad > position else None


def tables_of(spark: SparkSession | None, layout: Layout, app_id: str, sink: Sink) -> Tables:
    """Return how an engine opens the tables of a root.

    Raises:
        SettingsInvalid: the sink is `files`, and only Spark opens the root's tables.
        TableUnsuited: the sink is `files`, and quarantine asks for Spark's writer.
    """
    is_reached = layout.storage.reaches(layout.root)
    if not is_reached and sink is Sink.FILES:
        raise SettingsInvalid(
            f"The tables under {layout.root} cannot be written as files: they are on a mount, or in a store that "
            "`deltalake` does not open.",
            "Set `run.sink` to auto or spark.",
        )
    takes_files = is_reached and sink is not Sink.SPARK and _takes_files(layout, sink)
    return Tables(spark, layout, app_id, sink, takes_files)


def _takes_files(layout: Layout, sink: Sink) -> bool:
    try:
        SilverTable.at(layout.storage, layout.quarantine).require_suited()
    except (TableUnsuited, deltalake.exceptions.DeltaError):
        if sink is Sink.FILES:
            raise
        return False
    return True
