"""The silver stage for one game: everything new in its bronze partition, typed, each row exactly once."""

from __future__ import annotations

import shlex

from pyspark.sql import DataFrame, SparkSession

from demux.core.columns.map_in_arrow import batches_within_memory
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import BatchCounts, OnRetry, Target, commit
from demux.core.delta.log import newest_version
from demux.core.names import names_of
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock, unlocked
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Decoder
from demux.core.streaming.checkpoints import require_checkpoint
from demux.core.streaming.query import run_query
from demux.core.streaming.session import has_protobuf_functions
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.decoders.batch_contents import contents_of
from deserializer.decoders.schema_decision import schema_ids_of
from deserializer.decoders.select import choose, native_decoder
from deserializer.fleet.handover import stream_start
from deserializer.silver.evolve import examined_rows, fitted, silver_rows
from deserializer.stream.source import game_stream


def deserialize(
    spark: SparkSession,
    layout: Layout,
    schemas: SchemaStore,
    game: str,
    decoder: Decoder = Decoder.AUTO,
    tables: TableLock = unlocked,
) -> GameReport:
    """Return what was decoded; runs until all of the game's bronze rows are in silver or quarantine.

    A second run takes only what is new; after a crash it finishes the batch under way.

    Args:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        game: the exact game name.
        decoder: what decodes payloads.
        tables: keeps processes apart that write the quarantine table.

    Raises:
        CheckpointLost: the silver table is there and its checkpoint is not.
        RuntimeMissing: `from_protobuf` was asked for and is not to be had.
        ApprovalNeeded: a schema would change the table, which asks first; nothing was written.
        DecoderUnsuited: `from_protobuf` was asked for and cannot read one of the game's messages; nothing was written.
        RegistryUnavailable: a schema is not known here and the registry does not answer; nothing was written.
    """
    names = names_of(game)
    table, checkpoint = layout.silver(names.key), layout.silver_checkpoint(names.key)
    target = Target(table, layout.quarantine, OnRetry.TABLE_DECIDES, record_id="_record_id", lock=tables)
    counts: list[BatchCounts] = []
    seen: set[int] = set()
    native = native_decoder(has_protobuf_functions(spark), layout.root)

    def one_batch(frame: DataFrame, batch: Batch) -> None:
        contents = contents_of(frame)
        answers = schemas.lookup(contents.refs, game)
        decisions = fitted(spark, table, answers, schemas.contract(game), contents.refs)
        with batches_within_memory(frame, contents.sizes):
            rows = silver_rows(frame, decisions, choose(decoder, native, decisions))
            counts.append(
                commit(spark, batch, target, rows, lambda which: examined_rows(frame, decisions, game, batch, which))
            )
        seen.update(schema_ids_of(answers))

    rebuild = f"demux rebuild --game {shlex.quote(game)}"
    start = stream_start(spark, layout, schemas, game, tables)
    if start is None:
        require_checkpoint(spark, checkpoint, table, layout.quarantine, QuarantineFilter(game).sql(), rebuild)
    if start is None or start.version <= newest_version(spark, layout.bronze):
        source = game_stream(spark, layout.bronze, game, None if start is None else start.version)
        run_query(spark, source, checkpoint, names.query_name, one_batch)
    return GameReport(
        game,
        sum(count.rows_in for count in counts),
        sum(count.rows_good for count in counts),
        sum(count.rows_quarantined for count in counts),
        tuple(sorted(seen)),
    )
