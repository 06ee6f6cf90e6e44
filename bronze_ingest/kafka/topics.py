"""What bronze remembers of its topics, and what happens when the broker has lost records that it still needed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from bronze_ingest.kafka.offsets import Gap, Loss, Offsets, Topic, gaps, kafka_offsets, past_gaps, source_line
from demux.checkpoints import read_checkpoint
from demux.delta_log import newest_transaction
from demux.errors import OffsetsLost
from demux.spark_types import spark_struct
from demux.storage import read_text, remove_folder, replace_text, table_exists
from demux.tables import GAPS, TOPICS, Layout

# Kafka comes first in the query
KAFKA = 0
_MAX_SHOWN = 5
_DONE = 'v1\n{"nextBatchWatermarkMs":0}'

# the ids that each topic had, oldest first
History = Mapping[str, tuple[str, ...]]


def follow(spark: SparkSession, layout: Layout, now: Mapping[str, Topic], accept_gaps: bool) -> Mapping[str, int]:
    """Return how often each topic was made, where it was more than once; afterwards the stream can go on.

    Writes new topics into the table of topics. With `accept_gaps`, lost offsets go into the table of gaps and the
    stream's position is moved behind them. Safe to call again after a crash anywhere.

    Raises:
        OffsetsLost: the broker no longer has what the stream needs, and `accept_gaps` is off; nothing was changed.
    """
    if not accept_gaps:
        require_offsets(spark, layout, now)
    history = _history(spark, layout)
    lost = _lost(spark, layout, now, history)
    if lost:
        _write_down(spark, layout, lost)
        _move_behind(spark, layout, lost, now)
    new = {name: topic.topic_id for name, topic in now.items() if topic.topic_id not in history.get(name, ())[-1:]}
    if new:
        time = datetime.now(timezone.utc)
        rows = [(name, topic_id, time) for name, topic_id in sorted(new.items())]
        frame = spark.createDataFrame(rows, spark_struct(TOPICS)).coalesce(1)
        frame.write.format("delta").mode("append").save(layout.topics)
    made = {name: len(history.get(name, ())) + (name in new) for name in now}
    return {name: count for name, count in made.items() if count > 1}


def require_offsets(spark: SparkSession, layout: Layout, now: Mapping[str, Topic]) -> None:
    """Return nothing when the broker has all that the stream still needs.

    Raises:
        OffsetsLost: it does not.
    """
    if lost := _lost(spark, layout, now, _history(spark, layout)):
        raise _offsets_lost(lost)


def _lost(spark: SparkSession, layout: Layout, now: Mapping[str, Topic], history: History) -> tuple[Gap, ...]:
    return gaps(_needed(spark, layout.bronze_checkpoint), now, {name: ids[-1] for name, ids in history.items()})


def _history(spark: SparkSession, layout: Layout) -> History:
    if not table_exists(spark, layout.topics):
        return {}
    rows = spark.read.format("delta").load(layout.topics).orderBy("since").collect()
    return {name: tuple(row.topic_id for row in rows if row.topic == name) for name in {row.topic for row in rows}}


def _needed(spark: SparkSession, checkpoint: str) -> Offsets:
    """Return where the next batch begins; nothing before the first batch was done."""
    done = read_checkpoint(spark, checkpoint).done
    if done < 0:
        return {}
    line = source_line(read_text(spark, f"{checkpoint}/offsets/{done}"), KAFKA)
    return (kafka_offsets(line) if line is not None else None) or {}


def _offsets_lost(lost: tuple[Gap, ...]) -> OffsetsLost:
    shown = [str(gap) for gap in lost[:_MAX_SHOWN]]
    if len(lost) > _MAX_SHOWN:
        shown.append(f"and {len(lost) - _MAX_SHOWN} more partitions")
    why = {
        Loss.EXPIRED: "the broker has deleted them",
        Loss.MADE_AGAIN: "the topic was deleted and made again",
        Loss.GONE: "the topic is gone",
    }
    reasons = " and ".join(why[loss] for loss in Loss if any(gap.loss is loss for gap in lost))
    return OffsetsLost(
        f"Records that were not read yet are lost, as {reasons}: {'; '.join(shown)}.",
        "Restore them, or run `demux ingest --accept-gaps` once: it goes on without them and writes the gap down.",
        gaps=lost,
    )


def _write_down(spark: SparkSession, layout: Layout, lost: tuple[Gap, ...]) -> None:
    known = set()
    if table_exists(spark, layout.gaps):
        columns = ("topic", "topic_id", "partition", "first_offset")
        known = {tuple(row) for row in spark.read.format("delta").load(layout.gaps).select(*columns).collect()}
    now = datetime.now(timezone.utc)
    rows = [
        (gap.topic, gap.topic_id, gap.partition, gap.first, gap.end, gap.loss.value, now)
        for gap in lost
        if (gap.topic, gap.topic_id, gap.partition, gap.first) not in known
    ]
    if rows:
        frame = spark.createDataFrame(rows, spark_struct(GAPS)).coalesce(1)
        frame.write.format("delta").mode("append").save(layout.gaps)


def _move_behind(spark: SparkSession, layout: Layout, lost: tuple[Gap, ...], now: Mapping[str, Topic]) -> None:
    """Move the position in the checkpoint's own log; a batch that was begun counts as done where bronze has it."""
    checkpoint = layout.bronze_checkpoint
    found = read_checkpoint(spark, checkpoint)
    last = found.done
    if found.unfinished is not None:
        assert found.query_id is not None
        written = (
            newest_transaction(spark, layout.bronze, found.query_id) if table_exists(spark, layout.bronze) else None
        )
        if written is not None and written >= found.unfinished:
            last = found.unfinished
            replace_text(spark, f"{checkpoint}/commits/{last}", _DONE)
        else:
            remove_folder(spark, f"{checkpoint}/offsets/{found.unfinished}")
    log = f"{checkpoint}/offsets/{last}"
    replace_text(spark, log, past_gaps(read_text(spark, log), KAFKA, lost, now))
