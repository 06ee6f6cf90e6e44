"""Where the games and bronze stand, as the ledger asks it: both engines and all sources, from tables and checkpoints.

Reads small files; changes nothing. What is not known for sure is left out: the ledger then calls a record waiting.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from bronze_ingest.kafka.offsets import Loss, kafka_offsets, source_line, start_line
from bronze_ingest.kafka.position import KAFKA
from demux.checkpoints import read_checkpoint
from demux.delta_log import commit_in, commit_name, newest_version
from demux.forgetting.found import ALL_READ
from demux.ledger.snapshots import last_batches
from demux.ledger.standing import Part, Range, SourceStand, Stand
from demux.names import names_of
from demux.roots import layout_of
from demux.settings import Settings
from demux.settings_source import SourceKind
from demux.storage import file_names, read_text, table_exists
from demux.tables import Layout
from demux.transactions import transaction_of
from deserializer.fleet.run import fleet_of
from deserializer.fleet.silver import SilverTable
from deserializer.fleet.standing import position_in
from deserializer.fleet.turns import Turn

_THREADS = 8


def stands_of(spark: SparkSession, layout: Layout) -> Callable[[Collection[str]], Mapping[str, Stand]]:
    """Return what says where games stand in bronze, by key; whichever engine has decoded them."""

    def stands(keys: Collection[str]) -> Mapping[str, Stand]:
        app_id = fleet_of(spark, layout)
        names = sorted(keys)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="stands") as pool:
            found = pool.map(lambda key: _stand(spark, layout, key, app_id), names)
            return {key: stand for key, stand in zip(names, found, strict=True) if stand is not None}

    return stands


def read_batch(spark: SparkSession, layout: Layout, game: str) -> int:
    """Return the last batch of bronze that a game has read whole; -1 where nobody knows of one, `ALL_READ` for all."""
    key = names_of(game).key
    stand = stands_of(spark, layout)([key]).get(key)
    if stand is None:
        return -1
    if stand.version > newest_version(spark, layout.bronze):
        return ALL_READ
    writer = read_checkpoint(spark, layout.bronze_checkpoint).query_id
    batches = {} if writer is None else last_batches(spark, layout.bronze, writer, [stand.version])
    return batches.get(stand.version, -1)


def _stand(spark: SparkSession, layout: Layout, key: str, app_id: str | None) -> Stand | None:
    number = None if app_id is None else _transaction(spark, layout, layout.silver(key), app_id)
    if app_id is not None and number is not None and (turn := Turn.of(number)).is_the_fleets:
        # what was read of the commit that it is in counts once it has read all of it
        return Stand(turn.position.version, f"{app_id}/{turn.number}")
    checkpoint = layout.silver_checkpoint(key)
    found = read_checkpoint(spark, checkpoint)
    if found.query_id is None or found.done < 0:
        return None
    return Stand(position_in(read_text(spark, f"{checkpoint}/offsets/{found.done}")).version, found.query_id)


def _transaction(spark: SparkSession, layout: Layout, table: str, app_id: str) -> int | None:
    """Return the newest version of the application's transactions; None for none."""
    if layout.storage.reaches(table):
        return SilverTable.at(layout.storage, table).transaction(app_id)
    return transaction_of(spark, table, app_id)


def source_stand_of(spark: SparkSession, settings: Settings) -> Callable[[], SourceStand]:
    """Return what says where bronze stands in its source."""

    def stand() -> SourceStand:
        layout = layout_of(settings)
        checkpoint = layout.bronze_checkpoint
        found = read_checkpoint(spark, checkpoint)
        line = None
        if found.done >= 0:
            line = source_line(read_text(spark, f"{checkpoint}/offsets/{found.done}"), KAFKA)
        match settings.source.kind:
            case SourceKind.FILES:
                return SourceStand(found.query_id)
            case SourceKind.DELTA:
                table = settings.source_path
                if line is None or not table_exists(spark, table):
                    return SourceStand(found.query_id)
                return SourceStand(found.query_id, table, _read_whole(spark, table, json.loads(line)))
            case SourceKind.KAFKA:
                return _kafka(spark, layout, found.query_id, line)

    return stand


def _read_whole(spark: SparkSession, table: str, offset: Mapping[str, Any]) -> int | None:
    """Return the last version of the source table that a Delta source has read whole; None for none.

    An offset is a commit and a file in it. Below 0, nothing of the commit is read. A stream begins with all files that
    the table has at first, as if one commit had added them.
    """
    version, index = int(offset["reservoirVersion"]), int(offset["index"])
    begins = offset.get("isStartingVersion") is True
    if index < 0:
        return None if begins or version == 0 else version - 1
    if begins:
        files = len(spark.read.format("delta").option("versionAsOf", version).load(table).inputFiles())
        return version if index >= files - 1 else None
    name = commit_name(version)
    folder = f"{table}/_delta_log"
    if name not in file_names(spark, folder):
        return version - 1
    added = len(commit_in(version, read_text(spark, f"{folder}/{name}"), "").added)
    return version if index >= added - 1 else version - 1


def _kafka(spark: SparkSession, layout: Layout, writer: str | None, line: str | None) -> SourceStand:
    ends = (kafka_offsets(line) if line is not None else None) or {}
    start = f"{layout.bronze_checkpoint}/sources/{KAFKA}"
    begins: Mapping[str, Mapping[int, int]] = {}
    if "0" in file_names(spark, start):
        begins = kafka_offsets(start_line(read_text(spark, f"{start}/0"))) or {}
    made = _made(spark, layout)
    return SourceStand(
        writer,
        begins={(topic, at): first for topic, by in begins.items() for at, first in by.items()},
        ends={(_log(topic, made.get(topic, 1)), at): end for topic, by in ends.items() for at, end in by.items()},
        given_up=_given_up(spark, layout, made),
    )


def _made(spark: SparkSession, layout: Layout) -> Mapping[str, int]:
    """Return how often each topic was made."""
    if not table_exists(spark, layout.topics):
        return {}
    return {
        row.topic: row["count"]
        for row in spark.read.format("delta").load(layout.topics).groupBy("topic").count().collect()
    }


def _given_up(spark: SparkSession, layout: Layout, made: Mapping[str, int]) -> Mapping[Part, list[Range]]:
    """Return the ranges that were given up in the topics as they are now; those of older ones are behind their end."""
    found: defaultdict[Part, list[Range]] = defaultdict(list)
    if table_exists(spark, layout.gaps):
        for row in spark.read.format("delta").load(layout.gaps).where(f"reason = '{Loss.EXPIRED.value}'").collect():
            found[_log(row.topic, made.get(row.topic, 1)), row.partition].append((row.first_offset, row.end_offset))
    return found


def _log(topic: str, number: int) -> str:
    # as in `bronze_ingest.kafka.source`: record ids must differ
    return topic if number < 2 else f"{topic}@{number}"
