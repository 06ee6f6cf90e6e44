"""What bronze remembers of its topics, and what happens when the broker has lost records that it still needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from bronze_ingest.kafka.checkpoint_offsets import StreamPosition, move, position
from bronze_ingest.kafka.lost_offsets import Gap, Loss, Offsets, TopicState, begins, gaps, past_gaps
from demux.core.catalog.spark_tables import read_table, save_table
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Struct
from demux.core.errors import OffsetsLost
from demux.core.root.layout import Layout
from demux.core.storage.table_address import TableAddress
from demux.core.tables import GAPS, TOPICS

_MAX_SHOWN = 5
_WHY = {
    Loss.EXPIRED: "the broker has deleted them",
    Loss.MADE_AGAIN: "the topic was deleted and made again",
    Loss.CUT_OFF: "the broker's log ends before them",
    Loss.GONE: "the topic is gone, or no longer among those to read",
}

# the ids that each topic had, oldest first
History = Mapping[str, tuple[str, ...]]


def follow(spark: SparkSession, layout: Layout, now: Mapping[str, TopicState], accept_gaps: bool) -> Mapping[str, int]:
    """Return how often each topic was made, where it was more than once; afterwards the stream can continue.

    Writes new topics into the table of topics. With `accept_gaps`, lost offsets go into the table of gaps and the
    stream's position is moved behind them. A topic that is new to the stream begins where the broker begins, one that
    was given up and is read again continues at its offset. Safe to call again after a crash anywhere.

    Raises:
        OffsetsLost: the broker no longer has what the stream needs, and `accept_gaps` is off; nothing was changed.
    """
    history, at = _history(spark, layout), position(layout.storage, layout.bronze_checkpoint)
    lost = _lost(spark, layout, at, now, history)
    if lost and not accept_gaps:
        raise _offsets_lost(lost)
    _write_down(spark, layout, lost)
    # before the move: offsets of such a log are given out again, and record ids must not be
    cut_off = {gap.topic for gap in lost if gap.loss is Loss.CUT_OFF}
    _remember(spark, layout, now, cut_off)
    begun = begins(at.needed, now, _left(spark, layout, at.needed, now, history)) if at.needed else {}
    if lost or begun:
        move(layout.storage, layout.bronze_checkpoint, lambda offsets: {**past_gaps(offsets, lost, now), **begun})
    # after the move: until then, the id that it had says that it was made again
    new = {name for name, topic in now.items() if topic.topic_id not in history.get(name, ())[-1:]}
    _remember(spark, layout, now, new)
    made = {name: len(history.get(name, ())) + (name in new) + (name in cut_off) for name in now}
    return {name: count for name, count in made.items() if count > 1}


def require_offsets(spark: SparkSession, layout: Layout, now: Mapping[str, TopicState]) -> None:
    """Return nothing when the broker has all that the stream still needs.

    Raises:
        OffsetsLost: it does not.
    """
    at = position(layout.storage, layout.bronze_checkpoint)
    if lost := _lost(spark, layout, at, now, _history(spark, layout)):
        raise _offsets_lost(lost)


def _lost(
    spark: SparkSession, layout: Layout, at: StreamPosition, now: Mapping[str, TopicState], history: History
) -> tuple[Gap, ...]:
    found = gaps(at.needed, at.begun, now, {name: ids[-1] for name, ids in history.items()})
    if not any(gap.loss is Loss.MADE_AGAIN for gap in found):
        return found
    # the stream was moved to the new topic's beginning, and then something broke
    accepted = {(row.topic, row.topic_id) for row in _gap_rows(spark, layout, {Loss.MADE_AGAIN})}
    moved = {name for name in at.needed if name in now and at.needed[name] == now[name].earliest}
    return tuple(
        gap
        for gap in found
        if not (gap.loss is Loss.MADE_AGAIN and gap.topic in moved and (gap.topic, gap.topic_id) in accepted)
    )


def _left(
    spark: SparkSession, layout: Layout, needed: Offsets, now: Mapping[str, TopicState], history: History
) -> Mapping[tuple[str, int], int]:
    if not any(name in history for name in now if name not in needed):
        return {}
    return {(row.topic_id, row.partition): row.first_offset for row in _gap_rows(spark, layout, {Loss.GONE})}


def _gap_rows(spark: SparkSession, layout: Layout, losses: set[Loss]) -> list[Any]:
    if not layout.storage.table_exists(layout.gaps):
        return []
    rows: list[Any] = read_table(spark, layout.storage.address(layout.gaps)).orderBy("accepted_at").collect()
    return [row for row in rows if Loss(row.reason) in losses]


def _history(spark: SparkSession, layout: Layout) -> History:
    if not layout.storage.table_exists(layout.topics):
        return {}
    # sorted here: Spark would need a further stage
    rows = sorted(read_table(spark, layout.storage.address(layout.topics)).collect(), key=lambda row: row.since)
    return {name: tuple(row.topic_id for row in rows if row.topic == name) for name in {row.topic for row in rows}}


def _offsets_lost(lost: tuple[Gap, ...]) -> OffsetsLost:
    shown = [str(gap) for gap in lost[:_MAX_SHOWN]]
    if len(lost) > _MAX_SHOWN:
        shown.append(f"and {len(lost) - _MAX_SHOWN} more partitions")
    reasons = " and ".join(why for loss, why in _WHY.items() if any(gap.loss is loss for gap in lost))
    return OffsetsLost(
        f"Offsets that the stream needs are lost, as {reasons}: {'; '.join(shown)}.",
        "Restore them, or run `demux ingest --accept-gaps` once: it continues without them and records the gap.",
        gaps=lost,
    )


def _write_down(spark: SparkSession, layout: Layout, lost: tuple[Gap, ...]) -> None:
    if not lost:
        return
    known = {(row.topic, row.topic_id, row.partition, row.first_offset) for row in _gap_rows(spark, layout, set(Loss))}
    now = datetime.now(timezone.utc)
    rows = [
        (gap.topic, gap.topic_id, gap.partition, gap.first, gap.end, gap.loss.value, now)
        for gap in lost
        if (gap.topic, gap.topic_id, gap.partition, gap.first) not in known
    ]
    _append(spark, layout.storage.address(layout.gaps), GAPS, rows)


def _remember(spark: SparkSession, layout: Layout, now: Mapping[str, TopicState], names: Iterable[str]) -> None:
    time = datetime.now(timezone.utc)
    _append(
        spark,
        layout.storage.address(layout.topics),
        TOPICS,
        [(name, now[name].topic_id, time) for name in sorted(names)],
    )


def _append(spark: SparkSession, table: TableAddress, columns: Struct, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        frame = spark.createDataFrame(rows, spark_struct(columns)).coalesce(1)
        save_table(spark, frame.write.mode("append"), table)
