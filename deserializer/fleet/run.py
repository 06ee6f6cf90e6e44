"""The fleet's flow: where each game stands, what it has still to read, one Spark job for all, then the commits.

Games whose tables only Spark can write are decoded one by one, in the same round (`by_spark.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from pyspark.sql import SparkSession

from demux.lock import TableLock, unlocked
from demux.reports import GameReport
from demux.schema_store import SchemaStore
from demux.settings import Sink
from demux.storage import Files, exists, read_text, replace_text
from demux.tables import Layout
from deserializer.fleet.bronze import fleet_id
from deserializer.fleet.by_files import ByFiles
from deserializer.fleet.by_spark import BySpark
from deserializer.fleet.games import Decoded, Due, Games
from deserializer.fleet.silver import SilverTable
from deserializer.fleet.silver_by_spark import SilverBySpark
from deserializer.fleet.tables import tables_of


class Fleet:
    """Decodes many games together; keeps what it learnt of their tables from round to round.

    For one process: the root's lock sees to it.
    """

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        schemas: SchemaStore,
        finish_stream: Callable[[str], object],
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
            finish_stream: ends the batch that a game's stream had begun; the other engine.
            most_rows: of a game in one round, about; the rest waits.
            threads: that look and commit at the same time.
            tables: keeps processes apart that write the quarantine table.
            sink: who writes the tables.

        Raises:
            SettingsInvalid, TableUnsuited: as `tables_of` and `fleet_id`.
        """
        self._app_id = fleet_id(spark, layout)
        opened_by = tables_of(spark, layout, self._app_id, sink)
        if fleet_of(spark, layout) != self._app_id:
            # for streams that go on from here
            replace_text(spark, layout.fleet, self._app_id)
        self._games = Games(spark, opened_by, schemas, finish_stream, most_rows)
        self._quarantine = opened_by.quarantine(tables)
        self._threads = max(threads, layout.storage.side_by_side(layout.root))
        self._by_files = ByFiles(spark, layout.storage, self._games, self._quarantine, self._app_id, self._threads)
        self._by_spark = BySpark(spark, self._games, self._quarantine, self._app_id, threads, tables)

    def decode(self, games: Iterable[str], now: datetime) -> Iterator[Decoded]:
        """Yield how each game ended, in order of time: its rows are in silver or in quarantine, up to its share.

        A second call takes what is new; after a crash anywhere, each game goes on where its own table says. One game's
        failure stops no other.

        Args:
            games: exact names.
            now: the time of decoding.
        """
        self._quarantine.refresh()
        due, failed = self._games.due(games, self._quarantine, self._threads)
        for game, error in failed.items():
            yield Decoded(game, None, error)
        for one in due.values():
            if not one.pieces:
                yield Decoded(one.game, GameReport(one.game, 0, 0, 0, (), one.rows_waiting), None)
        active = {game: one for game, one in due.items() if one.pieces}
        yield from self._by_files.decode(_with(SilverTable, active), now)
        yield from self._by_spark.decode(_with(SilverBySpark, active))


def fleet_of(files: Files, layout: Layout) -> str | None:
    """Return the id of the transactions of the root's fleet; None where there never was one."""
    return read_text(files, layout.fleet) if exists(files, layout.fleet) else None


def _with(kind: type[object], due: Mapping[str, Due]) -> dict[str, Due]:
    return {game: one for game, one in due.items() if isinstance(one.table, kind)}
