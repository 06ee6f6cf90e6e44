"""The silver stage for one game by a stream: everything new in its bronze partition, typed, each row exactly once.

How far the game is decoded says its table, as for the fleet (`bronze_offset`). The checkpoint only saves the stream
from reading bronze's log again: one that says something else is removed.
"""

from __future__ import annotations

from datetime import datetime, timezone

from pyspark.sql import DataFrame, SparkSession

from demux.core.control.freshness import merge
from demux.core.delta.app_transactions import Batch
from demux.core.delta.bronze_games import position_id
from demux.core.delta.log import newest_version
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock, no_lock
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Decoder, Sink
from demux.core.spark.map_in_arrow import batches_within_memory
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import START, BronzeOffset
from demux.core.streaming.checkpoints import end_of, read_checkpoint
from demux.core.streaming.query import run_query
from demux.core.streaming.session import has_protobuf_functions
from deserializer.decoders.schema_decision import decide
from deserializer.decoders.select import choose, native_decoder
from deserializer.fleet.round import Fleet
from deserializer.silver.append import contents_of, exclude_committed_rows, write_rows
from deserializer.silver.backend import find_interrupted_offset, tables_of
from deserializer.silver.fit import fit
from deserializer.silver.spark_quarantine import QuarantineBySpark
from deserializer.silver.spark_table import SilverBySpark
from deserializer.stream.source import game_stream

_ALL_ROWS = 2**62


def deserialize(
    spark: SparkSession,
    layout: Layout,
    schemas: SchemaStore,
    game: str,
    decoder: Decoder = Decoder.AUTO,
    tables: TableLock = no_lock,
) -> GameReport:
    """Return what was decoded; runs until all of the game's bronze rows are in silver or quarantine.

    A second run takes only what is new; after a crash, of whichever engine, it continues at the table's offset.

    Args:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        game: the exact game name.
        decoder: what decodes payloads.
        tables: keeps processes apart that write the quarantine table.

    Raises:
        TableLost, PositionLost: as `Tables.position`; nothing was written.
        ConcurrentChange: another process decoded the game meanwhile; nothing was written twice.
        RuntimeMissing: `from_protobuf` was asked for and is not to be had.
        ApprovalNeeded: a schema would change the table, which asks first; nothing was written.
        DecoderUnsuited: `from_protobuf` was asked for and cannot read one of the game's messages; nothing was written.
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    names = names_of(game)
    checkpoint = layout.silver_checkpoint(names.key)
    opened = tables_of(spark, layout, position_id(spark, layout), Sink.AUTO)
    table = SilverBySpark(spark, layout.storage, layout.silver(names.key))
    at = opened.position(game, table)
    if at.index:
        # a stream begins with a whole commit
        return _by_fleet(Fleet(spark, layout, schemas, most_rows=_ALL_ROWS, threads=1, tables=tables), game)
    quarantine = QuarantineBySpark(spark, layout, opened.app_id, tables)
    quarantine.refresh()
    native = native_decoder(has_protobuf_functions(spark), layout.root)
    reports: list[GameReport] = []

    def one_batch(frame: DataFrame, batch: Batch) -> None:
        before = opened.position(game, table)
        after = end_of(layout.storage, checkpoint, batch.batch_id)
        if after <= before:
            # the table was written, and then the process died
            return
        rows = (
            frame
            if find_interrupted_offset(quarantine, game, before) is None
            else exclude_committed_rows(frame, game, table, quarantine)
        )
        contents = contents_of(rows)
        answers = schemas.lookup(contents.refs, game)
        contract = schemas.contract(game)
        # a decoder that does not suit is refused before the table changes
        chosen = choose(decoder, native, decide(table.columns, answers, table.message, contract, rows=contents.refs))
        decisions = fit(spark, layout.storage, table, answers, contract, contents.refs)
        with batches_within_memory(rows, contents.sizes):
            bad = write_rows(
                rows,
                decisions,
                game,
                Batch(opened.app_id, after.number, retried=False),
                lambda bad: quarantine.append_rows(bad, game, after),
                lambda good: table.append_rows(good, opened.app_id, after.number),
                chosen,
            )
        # of all rows that were read: which of them decoded is known in Spark's tasks alone
        fresh = contents.ages.later((datetime.now(timezone.utc) - contents.read_at).total_seconds())
        reports.append(
            GameReport(game, contents.rows, contents.rows - bad, bad, decisions.schema_ids(), freshness=fresh)
        )

    if not _is_at(layout.storage, checkpoint, at):
        layout.storage.delete_folder(checkpoint)
    if at.version <= newest_version(layout.storage, layout.bronze):
        source = game_stream(spark, layout.bronze, game, None if at == START else at.version)
        run_query(layout.storage, source, checkpoint, names.query_name, one_batch)
    return GameReport(
        game,
        sum(report.rows_in for report in reports),
        sum(report.rows_silver for report in reports),
        sum(report.rows_quarantined for report in reports),
        tuple(sorted({schema_id for report in reports for schema_id in report.schema_ids})),
        freshness=merge(report.freshness for report in reports),
    )


def _is_at(storage: Storage, checkpoint: str, at: BronzeOffset) -> bool:
    """Return whether a stream with this checkpoint continues at the position, or with a batch that ends there."""
    found = read_checkpoint(storage, checkpoint)
    batches = {batch for batch in (found.done, found.begun) if batch >= 0}
    return at in {end_of(storage, checkpoint, batch) for batch in batches}


def _by_fleet(fleet: Fleet, game: str) -> GameReport:
    (decoded,) = fleet.decode([game], datetime.now(timezone.utc))
    if decoded.error is not None:
        raise decoded.error
    assert decoded.report is not None
    return decoded.report
