"""Rows of quarantine decoded again: what decodes now moves to the game's table, and the rest stays with today's cause.

Silver is written first, with the time of decoding as the version of an application transaction, which quarantine's
commit repeats. Where silver is ahead, a replay died between the two: the next one knows the rows that it has written by
their time of decoding, and leaves these out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.causes import Stage
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.spark import columns_in_json
from demux.core.columns.types import Struct
from demux.core.delta.app_transactions import transaction_of
from demux.core.delta.batch_commit import REFUSED
from demux.core.delta.commit import Replacement
from demux.core.delta.log import file_path
from demux.core.delta.parquet_writer import TableWriter, schema_json
from demux.core.delta.rewrite_rows import chosen_rows, open_to_replace, replace_beside
from demux.core.delta.scan import file_rows, sizes_of
from demux.core.errors import ConcurrentChange
from demux.core.extras import deltalake
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Sink
from demux.core.spark.map_in_arrow import ArrowFunction, Batches, batches_within_memory, map_in_arrow
from demux.core.tables import QUARANTINE, SILVER_ORIGIN
from demux.operations.quarantine.drop import chosen, droppable, finish_drop
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.decoders.arrow import INPUT, REF, SchemaBatch, by_ref, good_rows, parts_of
from deserializer.decoders.schema_decision import Decisions
from deserializer.silver.append import contents_of
from deserializer.silver.backend import tables_of
from deserializer.silver.evolve import silver_rows
from deserializer.silver.file_table import SilverTable
from deserializer.silver.fit import fit
from deserializer.silver.rewrite import replace_rows, replacing_session
from deserializer.silver.spark_table import SilverBySpark

# of quarantine, which one process decodes
_MOST_BYTES = 256 * 2**20
# the application whose transactions number the replays of a table; quarantine has one for each game
_REPLAYS = "demux/replay"
_CHOICE = {"stage", "cause", "game_name", "record_id", "quarantined_at"}
_CHOSEN_BY = Struct(tuple(c for c in QUARANTINE if c.name in _CHOICE | {column.name for column in REF}))
_WRITTEN = Struct(tuple(c for c in SILVER_ORIGIN if c.name in {"_record_id", "_decoded_at"}))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did, in rows: tried, and now in silver."""

    game: str
    tried: int
    decoded: int


@dataclass(frozen=True, slots=True)
class _Replay:
    """A replay of one game's rows.

    Attributes:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        game: the exact name.
        choice: which of its rows of quarantine.
        at: the time of decoding.
        died_at: that of a replay which died before quarantine's commit; None where none did.
    """

    spark: SparkSession
    layout: Layout
    schemas: SchemaStore
    game: str
    choice: QuarantineFilter
    at: datetime
    died_at: datetime | None

    @property
    def number(self) -> int:
        """The version of both transactions."""
        return (self.at - _EPOCH) // _MICROSECOND

    @property
    def app_id(self) -> str:
        """The id of quarantine's transaction."""
        return f"{_REPLAYS}/{names_of(self.game).key}"

    def by_files(self, silver: SilverTable, quarantine: deltalake.DeltaTable) -> ReplayReport:
        """Decode in this process: the new rows of silver, then quarantine's files without them."""
        storage, path = self.layout.storage, self.layout.quarantine
        sizes, refs = self._chosen(quarantine)
        if not refs:
            return ReplayReport(self.game, 0, 0)
        contract = self.schemas.contract(self.game)
        decisions = fit(self.spark, storage, silver, self.schemas.lookup(refs, self.game), contract, refs)
        columns, everything = Struct((*decisions.columns, *SILVER_ORIGIN)), columns_in_json(schema_json(quarantine))
        is_new = self._new_rows(silver)
        decoded = 0
        with TableWriter(storage, silver.path, columns) as good, TableWriter(storage, path, everything) as left:
            for file, size in sizes.items():
                for rows in file_rows(storage, file_path(path, unquote(file)), size, arrow_fields(everything)):
                    is_mine = self.choice.among(rows)
                    left.add(rows.filter(pc.invert(is_mine)))
                    for mine, part in _decoded(iter([rows.filter(is_mine)]), decisions):
                        left.add(_still_bad(mine, part))
                        decoded += len(part.good)
                        if part.good:
                            good.add(good_rows(part, columns, self.at).filter(is_new(part)))
            added, kept = good.close(), left.close()
        if added:
            silver.transaction(_REPLAYS)
            silver.append(added, _REPLAYS, self.number)
        replacement = Replacement("UPDATE", sizes, kept, {self.app_id: self.number})
        if not replace_beside(storage, quarantine, path, replacement):
            raise ConcurrentChange(f"Another process rewrote files of {path} meanwhile.", "Run the same command again.")
        return ReplayReport(self.game, sum(refs.values()), decoded)

    def _chosen(self, quarantine: deltalake.DeltaTable) -> tuple[Mapping[str, int], Mapping[SchemaRef, int]]:
        """Return the files that have chosen rows, with their sizes, and how many of these rows have each schema ref."""
        sizes: dict[str, int] = {}
        refs: Counter[SchemaRef] = Counter()
        for file, size in sizes_of(quarantine).items():
            where = file_path(self.layout.quarantine, unquote(file))
            for rows in file_rows(self.layout.storage, where, size, arrow_fields(_CHOSEN_BY)):
                mine = rows.filter(self.choice.among(rows))
                if len(mine):
                    sizes[file] = size
                    refs.update({ref: len(each) for ref, each in by_ref(mine)})
        return sizes, refs

    def _new_rows(self, silver: SilverTable) -> Callable[[SchemaBatch], pa.BooleanArray]:
        """Return a function that says which good rows the replay that died has not written."""
        written: Counter[str] = Counter()
        if self.died_at is not None and silver.opened is not None:
            at = pa.scalar(self.died_at, pa.timestamp("us", "UTC"))
            rows = chosen_rows(
                self.layout.storage,
                silver.opened,
                silver.path,
                _WRITTEN,
                lambda batch: pc.equal(batch.column("_decoded_at"), at),
            )
            written.update(one for batch in rows for one in batch.column("_record_id").to_pylist())

        def is_new(part: SchemaBatch) -> pa.BooleanArray:
            ids = part.rows.column("record_id").take(pa.array(part.good, pa.int64())).to_pylist()
            news: list[bool] = []
            for one in ids:
                news.append(written[one] <= 0)
                written[one] -= 1
            return pa.array(news, pa.bool_())

        return is_new

    def by_spark(self, silver: SilverBySpark) -> ReplayReport:
        """Decode in Spark's tasks: the new rows of silver, then quarantine's rows that stay."""
        # read again inside the commit, which sees to it that no other came between
        quarantined = chosen(replacing_session(self.spark), self.layout, self.choice)
        rows = quarantined.withColumnRenamed("bytes", "payload").select(*(column.name for column in INPUT))
        contents = contents_of(rows)
        if not contents.rows:
            return ReplayReport(self.game, 0, 0)
        answers, contract = self.schemas.lookup(contents.refs, self.game), self.schemas.contract(self.game)
        decisions = fit(self.spark, self.layout.storage, silver, answers, contract, contents.refs)
        with batches_within_memory(rows, contents.sizes):
            decoded = silver_rows(rows, decisions).where(~F.col(REFUSED)).drop(REFUSED)
            if self.died_at is not None:
                before = read_table(quarantined.sparkSession, silver.address)
                written = before.where(F.col("_decoded_at") == F.lit(self.died_at)).groupBy("_record_id").count()
                copies = F.row_number().over(Window.partitionBy("_record_id").orderBy("_schema_id"))
                ranked = decoded.join(written, "_record_id", "left").withColumn("_copy", copies)
                decoded = ranked.where(F.col("_copy") > F.coalesce("count", F.lit(0))).select(*decoded.columns)
            silver.append_rows(decoded.withColumn("_decoded_at", F.lit(self.at)), _REPLAYS, self.number)
            stays = map_in_arrow(quarantined, _to_still_bad(decisions), quarantined.schema)
            left = stays.count()
            transaction = {"txnAppId": self.app_id, "txnVersion": str(self.number)}
            replace_rows(
                stays,
                self.layout.storage.address(self.layout.quarantine),
                replaceWhere=self.choice.sql(),
                **transaction,
            )
        return ReplayReport(self.game, contents.rows, contents.rows - left)


def _decoded(batches: Batches, decisions: Decisions) -> Iterator[tuple[pa.RecordBatch, SchemaBatch]]:
    """Yield the rows of quarantine of each schema ref, and what becomes of them."""
    names = [column.name for column in INPUT]
    for batch in batches:
        for _, rows in by_ref(batch):
            columns = [rows.column("bytes" if name == "payload" else name) for name in names]
            for part in parts_of(iter([pa.RecordBatch.from_arrays(columns, names=names)]), decisions):
                yield rows, part


def _to_still_bad(decisions: Decisions) -> ArrowFunction:
    """Return a function that gives those rows of quarantine that do not decode."""

    def convert(batches: Batches) -> Batches:
        for rows, part in _decoded(batches, decisions):
            yield _still_bad(rows, part)

    return convert


def _still_bad(rows: pa.RecordBatch, part: SchemaBatch) -> pa.RecordBatch:
    """Return those of the rows of quarantine that do not decode, with the cause and sentence of today."""
    bad = rows.take(pa.array([row for row, _ in part.bad], pa.int64()))
    sentences = pa.array([sentence for _, sentence in part.bad], pa.string())
    for name, values in (("cause", pa.array([part.cause] * len(bad), pa.string())), ("sentence", sentences)):
        bad = bad.set_column(bad.schema.get_field_index(name), name, values)
    return bad


def games_in_quarantine(spark: SparkSession, layout: Layout, choice: QuarantineFilter) -> tuple[str, ...]:
    """Return the games that have such rows in quarantine at stage silver, by name."""
    found = droppable(spark, layout, replace(choice, stage=Stage.SILVER))
    return tuple(sorted({one.game for one in found if one.game is not None}))


def replay(
    spark: SparkSession,
    layout: Layout,
    schemas: SchemaStore,
    game: str,
    choice: QuarantineFilter,
    sink: Sink = Sink.AUTO,
) -> ReplayReport:
    """Return what became of the game's quarantined rows: what decodes now moves to silver, exactly once.

    Rows that still do not decode stay, with the cause and sentence of today. After a replay that died between its two
    commits, all of the game's rows are tried, whatever was chosen.

    Args:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        game: the exact game name.
        choice: which of its rows.
        sink: who is to write silver.

    Raises:
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
        ConcurrentChange: another process wrote one of the tables meanwhile; the next replay ends what was begun.
    """
    storage = layout.storage
    silver = tables_of(spark, layout, "", sink).silver(names_of(game).key)
    app_ids = {silver.path: _REPLAYS, layout.quarantine: f"{_REPLAYS}/{names_of(game).key}"}
    last, finished = (transaction_of(storage, path, app_id) for path, app_id in app_ids.items())
    died_at = None if last is None or last <= (finished or 0) else _EPOCH + last * _MICROSECOND
    newest = max(last or 0, finished or 0)
    at = max(datetime.now(timezone.utc), _EPOCH + (newest + 1) * _MICROSECOND)
    mine = QuarantineFilter(game) if died_at is not None else replace(choice, game=game, stage=Stage.SILVER)
    finish_drop(spark, layout, mine)
    one = _Replay(spark, layout, schemas, game, mine, at, died_at)
    quarantine = open_to_replace(storage, layout.quarantine)
    if isinstance(silver, SilverTable) and quarantine is not None and sum(sizes_of(quarantine).values()) <= _MOST_BYTES:
        return one.by_files(silver, quarantine)
    return one.by_spark(SilverBySpark(spark, storage, silver.path))
