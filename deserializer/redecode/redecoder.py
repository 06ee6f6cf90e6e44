"""Rows of silver replaced by rows of bronze that are decoded again: all of a game's table, or those of some days.

In an order that loses nothing, wherever it is killed: first the rows that are bad now are added to quarantine, under
an id of this run alone; then one commit replaces the rows of silver; then the older rows of quarantine go, and the
notes of dropped ones. Until then a record may be in both tables, and in quarantine twice; the same again ends it.
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from demux.core.delta.batch_commit import ALONE
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.delta.log import newest_version
from demux.core.delta.rewrite_rows import open_to_replace
from demux.core.errors import DemuxError, GameUnknown
from demux.core.names import names_of, sql_string
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock, no_lock
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from demux.operations.quarantine.drop import delete_rows
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.decoders.schema_decision import Decisions
from deserializer.offsets.bronze_days import plain_bronze
from deserializer.offsets.days import among
from deserializer.offsets.logged_files import files_of_table
from deserializer.redecode.bronze_replacement import BronzeReplacement
from deserializer.redecode.source import BronzeRows, Redecoded, retired_rows
from deserializer.silver.backend import GameTable, tables_of
from deserializer.silver.file_table import SilverTable
from deserializer.silver.spark_table import SilverBySpark

# of bronze, which one task decodes beside what it replaces; of more, tasks have a part each, and Spark writes the table
_MOST_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class Redecoder:
    """Decodes again below one root; may be shared by threads with a game each.

    Attributes:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        sink: who is to write silver.
        lock: held around each write of the quarantine table, which a fleet writes without Spark.
        threads: that look and commit at the same time.
    """

    spark: SparkSession
    layout: Layout
    schemas: SchemaStore
    sink: Sink = Sink.AUTO
    lock: TableLock = no_lock
    threads: int = 1
    _learnt: dict[str, Decisions] = field(default_factory=dict)

    def replace_many(self, sources: Collection[BronzeRows], request: str) -> dict[str, Redecoded]:
        """Return what became of the rows of games, in one Spark job for all; what `replace` has to do is left out.

        Args:
            sources: the rows of each game.
            request: an id that no other call has.
        """
        found = self._replaced(sources, request)
        return {game: one for game, one in found.items() if isinstance(one, Redecoded)}

    def replace(self, source: BronzeRows, request: str, *, accept_loss: bool = False) -> Redecoded:
        """Return what became of the rows of one game; readers see one change of its table.

        A second call, also after a crash, does it again, and ends what the first one has begun.

        Args:
            source: the rows.
            request: an id that no other call has.
            accept_loss: also where rows of the game are not in bronze any more, which are lost then.

        Raises:
            RangeRetired: rows of the game are not in bronze any more; nothing was written.
            ApprovalNeeded: a schema would change the table, which asks first; nothing was written.
            RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
            ConcurrentChange: another process wrote the table meanwhile; nothing of it was changed.
        """
        if not accept_loss:
            for error in retired_rows(self.spark, self.layout, [source.game], source.span).values():
                raise error
        found = self._replaced([source], request, accept_loss=accept_loss)[source.game]
        if isinstance(found, DemuxError):
            raise found
        return found

    def _replaced(
        self, sources: Collection[BronzeRows], request: str, *, accept_loss: bool = False
    ) -> dict[str, Redecoded | DemuxError]:
        """Return what became of each game: the one place that says who writes which table."""
        storage = self.layout.storage
        tables = tables_of(self.spark, self.layout, request, self.sink)
        bronze = plain_bronze(self.layout)
        logged = {} if bronze is None else files_of_table(bronze, self.layout.bronze, "timestamp")
        files = {
            one.game: logged.get(one.game, [])
            for one in sources
            if bronze is not None and one.version == bronze.version()
        }
        threads = max(self.threads, storage.side_by_side(self.layout.root))

        def opened(source: BronzeRows) -> GameTable:
            path = self.layout.silver(names_of(source.game).key)
            is_large = sum(one.bytes for one in files.get(source.game, ())) > _MOST_BYTES
            if tables.takes_files and source.game in files and not (source.span is None and is_large):
                table = open_to_replace(storage, path)
                if table is not None or (source.span is None and not storage.table_exists(path)):
                    return SilverTable.at(storage, path, table)
            return SilverBySpark(self.spark, storage, path)

        with ThreadPoolExecutor(threads, thread_name_prefix="open") as pool:
            opened_tables = list(zip(sources, pool.map(opened, sources), strict=True))
        quarantine = tables.quarantine(self.lock)
        quarantine.refresh()
        replacement = BronzeReplacement(
            self.spark, self.layout, self.schemas, quarantine, threads, request, self._learnt
        )
        found = replacement.replace(opened_tables, files, accept_loss=accept_loss)
        done = {game: one for game, one in found.items() if isinstance(one, Redecoded)}
        self._clean(done, sources, request)
        return found

    def _clean(self, done: Mapping[str, Redecoded], sources: Collection[BronzeRows], request: str) -> None:
        """Take the older rows of quarantine out of it, and forget that rows were dropped."""
        cleaned = tuple(one for one in sources if one.game in done and (one.span is None or done[one.game].counts))
        if not cleaned:
            return
        storage, quarantine = self.layout.storage, self.layout.quarantine
        # Delta would refuse the second of two that take rows out of one table
        with ALONE:
            with self.lock(quarantine):
                delete_rows(self.spark, storage, quarantine, _RedecodedRows(cleaned, request))
            delete_rows(self.spark, storage, self.layout.dropped, _RedecodedRows(cleaned, None))


@dataclass(frozen=True, slots=True)
class _RedecodedRows:
    """Rows of quarantine, or of dropped ones, that were decoded again, but for those of a request."""

    sources: tuple[BronzeRows, ...]
    but: str | None

    def among(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return which rows are meant."""
        meant = pa.array([False] * len(rows), pa.bool_())
        for one in self.sources:
            mine = pc.and_(QuarantineFilter(one.game).among(rows), among(rows.column("timestamp"), one.span))
            meant = pc.or_(meant, mine)
        if self.but is None:
            return meant
        return pc.and_(meant, pc.fill_null(pc.not_equal(rows.column("query_id"), self.but), True))

    def sql(self) -> str:
        """Return the same as a SQL condition."""
        mine = " OR ".join(
            f"({QuarantineFilter(one.game).sql()} AND {'TRUE' if one.span is None else one.span.sql('timestamp')})"
            for one in self.sources
        )
        return f"({mine})" if self.but is None else f"({mine}) AND NOT query_id <=> {sql_string(self.but)}"


def rebuild(redecoder: Redecoder, game: str, *, accept_loss: bool = False) -> GameReport:
    """Return what was decoded of all rows that bronze has of the game, unread ones too; readers see one change.

    The table gets the columns of these rows' schemas, and the offset behind them: whoever decodes the game next
    continues there. Raises as `Redecoder.replace`, and

    Raises:
        GameUnknown: bronze has no row of the game; nothing was touched.
    """
    layout = redecoder.layout
    require_game(redecoder.spark, layout, game)
    source = BronzeRows(game, newest_version(layout.storage, layout.bronze))
    done = redecoder.replace(source, f"demux-rebuild/{uuid.uuid4()}", accept_loss=accept_loss)
    rows_in, rows_silver, rows_bad = (
        sum(getattr(one, name) for one in done.counts.values())
        for name in ("rows_in", "rows_silver", "rows_quarantined")
    )
    return GameReport(game, rows_in, rows_silver, rows_bad, done.schema_ids)


def require_game(spark: SparkSession | None, layout: Layout, game: str) -> None:
    """Check that bronze has rows of the game.

    Raises:
        GameUnknown: it has none.
    """
    if game not in games_in_bronze(spark, layout, {game}):
        raise no_rows_of(game)


def no_rows_of(game: str) -> GameUnknown:
    """Return the error of a game that bronze has no rows of."""
    return GameUnknown(
        f"Bronze has no rows of a game {shlex.quote(game)}.",
        "See `demux status` for the games; names are exact, upper and lower case included.",
        game=game,
    )
