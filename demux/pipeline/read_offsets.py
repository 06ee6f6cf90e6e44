"""The offsets of the games in bronze, by their tables, and of bronze in its source, by its checkpoint.

Reads small files; changes nothing. What is not known for sure is left out: the ledger then calls a record waiting.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from bronze_ingest.kafka.checkpoint_offsets import KAFKA
from bronze_ingest.kafka.lost_offsets import Loss, kafka_offsets, source_line, start_line
from demux.core.catalog.spark_tables import read_table
from demux.core.delta.app_transactions import transaction_of
from demux.core.delta.bronze_games import position_id
from demux.core.delta.log import commit_in, commit_name, newest_version
from demux.core.delta.record_table import RecordTable
from demux.core.names import names_of
from demux.core.root.layout import Layout, layout_of
from demux.core.settings.settings import Settings
from demux.core.settings.source import SourceKind
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.core.streaming.checkpoints import end_of, read_checkpoint
from demux.core.tables import GAPS, TOPICS
from demux.operations.erasure.results import ALL_READ
from demux.operations.reconcile.offsets import GameOffset, Part, Range, SourceOffsets
from demux.operations.reconcile.table_snapshots import last_batches, session_for

_THREADS = 8
_EXPIRED = f"SELECT * FROM {{records}} WHERE reason = '{Loss.EXPIRED.value}'"


def game_offsets(spark: SparkSession | None, layout: Layout) -> Callable[[Collection[str]], Mapping[str, GameOffset]]:
    """Return what says the offsets of games in bronze, by key, as their tables have them."""

    def read_offsets(keys: Collection[str]) -> Mapping[str, GameOffset]:
        if not layout.storage.table_exists(layout.bronze):
            return {}
        app_id = position_id(spark, layout)
        names = sorted(keys)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="offsets") as pool:
            found = pool.map(lambda key: _game_offset(layout, key, app_id), names)
            return {key: offset for key, offset in zip(names, found, strict=True) if offset is not None}

    return read_offsets


def read_batch(spark: SparkSession | None, layout: Layout, game: str) -> int:
    """Return the last batch of bronze that a game has read whole; -1 where it is unknown, `ALL_READ` for all."""
    key = names_of(game).key
    offset = game_offsets(spark, layout)([key]).get(key)
    if offset is None:
        return -1
    if offset.version > newest_version(layout.storage, layout.bronze):
        return ALL_READ
    writer = read_checkpoint(layout.storage, layout.bronze_checkpoint).query_id
    batches = {} if writer is None else last_batches(layout.storage, layout.bronze, writer, [offset.version])
    return batches.get(offset.version, -1)


def _game_offset(layout: Layout, key: str, app_id: str) -> GameOffset | None:
    storage, table, checkpoint = layout.storage, layout.silver(key), layout.silver_checkpoint(key)
    number = _transaction(layout.storage, table, app_id)
    if number is not None:
        # what was read of the commit that it is in counts once it has read all of it
        return GameOffset(BronzeOffset.of(number).version, app_id)
    done = read_checkpoint(storage, checkpoint).done
    # a stream has written the table, and nothing brings it back: what it had is lost (TABLE_LOST), and does not wait
    is_gone = done >= 0 and not storage.table_exists(table)
    return GameOffset(end_of(storage, checkpoint, done).version, app_id) if is_gone else None


def _transaction(storage: Storage, table: str, app_id: str) -> int | None:
    """Return the newest version of the application's transactions; None for none."""
    opened = storage.known_table(table)
    if opened is not None:
        return opened.transaction_version(app_id)
    return transaction_of(storage, table, app_id)


def source_offsets(spark: SparkSession | None, settings: Settings) -> Callable[[], SourceOffsets]:
    """Return what says the offset of bronze in its source."""

    def read_source() -> SourceOffsets:
        layout = layout_of(settings)
        storage = layout.storage
        checkpoint = layout.bronze_checkpoint
        found = read_checkpoint(storage, checkpoint)
        line = None
        if found.done >= 0:
            line = source_line(storage.read_text(f"{checkpoint}/offsets/{found.done}"), KAFKA)
        match settings.source.kind:
            case SourceKind.FILES:
                return SourceOffsets(found.query_id)
            case SourceKind.DELTA:
                table = settings.source_path
                if line is None or not storage.table_exists(table):
                    return SourceOffsets(found.query_id)
                return SourceOffsets(found.query_id, table, _read_whole(spark, storage, table, json.loads(line)))
            case SourceKind.KAFKA:
                return _kafka(spark, layout, found.query_id, line)

    return read_source


def _read_whole(spark: SparkSession | None, storage: Storage, table: str, offset: Mapping[str, Any]) -> int | None:
    """Return the last version of the source table that a Delta source has read whole; None for none.

    An offset is a commit and a file in it. Below 0, nothing of the commit is read. A stream begins with all files that
    the table has at first, as if one commit had added them.
    """
    version, index = int(offset["reservoirVersion"]), int(offset["index"])
    begins = offset.get("isStartingVersion") is True
    if index < 0:
        return None if begins or version == 0 else version - 1
    if begins:
        return version if index >= _files_at(spark, storage, table, version) - 1 else None
    name = commit_name(version)
    folder = f"{table}/_delta_log"
    if name not in storage.names(folder):
        return version - 1
    added = len(commit_in(version, storage.read_text(f"{folder}/{name}"), "").added)
    return version if index >= added - 1 else version - 1


def _files_at(spark: SparkSession | None, storage: Storage, table: str, version: int) -> int:
    """Return how many files a table has at a version."""
    opened = storage.known_table(table)
    if opened is None:
        found = read_table(session_for(spark, table), storage.address(table), versionAsOf=version)
        return len(found.inputFiles())
    opened.load_as_version(version)
    return len(opened.file_uris())


def _kafka(spark: SparkSession | None, layout: Layout, writer: str | None, line: str | None) -> SourceOffsets:
    storage = layout.storage
    ends = (kafka_offsets(line) if line is not None else None) or {}
    start = f"{layout.bronze_checkpoint}/sources/{KAFKA}"
    begins: Mapping[str, Mapping[int, int]] = {}
    if "0" in storage.names(start):
        begins = kafka_offsets(start_line(storage.read_text(f"{start}/0"))) or {}
    topics = RecordTable(spark, layout.storage, layout.topics, TOPICS).select("SELECT topic FROM {records}")
    made = Counter(row["topic"] for row in topics)
    given_up: defaultdict[Part, list[Range]] = defaultdict(list)
    # of the topics as they are now: those of older ones are behind their end
    for row in RecordTable(spark, layout.storage, layout.gaps, GAPS).select(_EXPIRED):
        given_up[_log(row["topic"], made[row["topic"]]), row["partition"]].append(
            (row["first_offset"], row["end_offset"])
        )
    return SourceOffsets(
        writer,
        begins={(topic, at): first for topic, by in begins.items() for at, first in by.items()},
        ends={(_log(topic, made[topic]), at): end for topic, by in ends.items() for at, end in by.items()},
        given_up=given_up,
    )


def _log(topic: str, number: int) -> str:
    # as in `bronze_ingest.kafka.source`: record ids must differ
    return topic if number < 2 else f"{topic}@{number}"
