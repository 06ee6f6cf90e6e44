"""The fleet's flow: the offset of each game, what it has still to read, one Spark job for all, then the commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from pyspark.sql import SparkSession

from demux.core.delta.bronze_games import metadata_of
from demux.core.errors import TableUnsuited
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock, unlocked
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from deserializer.fleet.file_writer import FileWriter
from deserializer.fleet.game_state import GameResult, GameStates
from deserializer.silver.backend import tables_of


class Fleet:
    """Decodes many games together; keeps what it learnt of their tables from round to round.

    For one process: the root's lock sees to it.
    """

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        schemas: SchemaStore,
        most_rows: int,
        threads: int,
        tables: TableLock = unlocked,
        sink: Sink = Sink.AUTO,
    ) -> None:
        """Prepare; bronze must be there.

        Args:
            spark: the session.
            layout: where the tables are.
            schemas: the schemas in use.
            most_rows: of a game in one round, about; the rest waits.
            threads: that look and commit at the same time.
            tables: keeps processes apart that write the quarantine table.
            sink: who writes the tables.

        Raises:
            SettingsInvalid, TableUnsuited: as `tables_of`.
            TableUnsuited: the names of bronze's columns are not those in its files.
        """
        app_id, properties = metadata_of(spark, layout)
        if properties.get("delta.columnMapping.mode", "none") != "none":
            raise TableUnsuited(
                f"The table {layout.bronze} has columns with other names in its files (column mapping).",
                "Set run.engine: stream.",
                table=layout.bronze,
            )
        opened_by = tables_of(spark, layout, app_id, sink)
        self._games = GameStates(spark, opened_by, schemas, most_rows)
        self._quarantine = opened_by.quarantine(tables)
        self._threads = max(threads, layout.storage.side_by_side(layout.root))
        self._writer = FileWriter(spark, layout.storage, self._games, self._quarantine, app_id, self._threads)

    def decode(self, games: Iterable[str], now: datetime) -> Iterator[GameResult]:
        """Yield how each game ended, in order of time: its rows are in silver or in quarantine, up to its share.

        A second call takes what is new; after a crash anywhere, each game continues where its own table says. One
        game's failure stops no other.

        Args:
            games: exact names.
            now: the time of decoding.
        """
        self._quarantine.refresh()
        due, failed = self._games.due(games, self._quarantine, self._threads)
        for game, error in failed.items():
            yield GameResult(game, None, error)
        for one in due.values():
            if not one.pieces:
                yield GameResult(one.game, GameReport(one.game, 0, 0, 0, (), one.rows_waiting), None)
        yield from self._writer.decode({game: one for game, one in due.items() if one.pieces}, now)
