"""The one stream that bronze reads: a Delta table or Kafka topics, and along with it an archive of files.

Every query has two sources, the second of which may be an empty folder, so that an archive can be named, and forgotten
again, at any time: Spark refuses another number of sources than a checkpoint has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from bronze_ingest.archive.batches import require_same_reading
from bronze_ingest.archive.record_batch import ARCHIVED
from bronze_ingest.archive.stream import archive_stream
from bronze_ingest.kafka.checkpoint_offsets import KAFKA
from bronze_ingest.kafka.lost_offsets import TopicState, kafka_offsets, source_line
from bronze_ingest.kafka.source import kafka_stream
from bronze_ingest.kafka.topic_history import follow, require_offsets
from demux.core.columns.spark import spark_type
from demux.core.errors import CheckpointLost, SettingsInvalid, SourceMissing
from demux.core.root.layout import Layout, layout_of
from demux.core.settings.settings import Settings
from demux.core.settings.source import ArchiveSettings, KafkaSettings, SourceKind
from demux.core.streaming.checkpoints import read_checkpoint
from demux.core.tables import SOURCE_OPTIONAL

# what every source gives: value, SOURCE_OPTIONAL, origin, record_id (NULL: the batch gives one), refused_sentence
SOURCE = ARCHIVED


def wrapper_stream(spark: SparkSession, settings: Settings, accept_gaps: bool = False) -> DataFrame:
    """Return a streaming frame in the columns of `SOURCE`, with an empty list for a record without headers.

    Asks the broker first, where Kafka is the source. With `accept_gaps`, writes lost offsets down and moves behind
    them.

    Raises:
        SourceMissing: there is no table or archive, or it has no BINARY column `value`.
        SettingsInvalid: bronze was filled from another kind of source; or as for `require_same_reading`.
        CheckpointLost: as for `kind_of`.
        KafkaUnavailable, KafkaRefused, TopicMissing: as for `topics_now`.
        OffsetsLost: as for `follow`.
    """
    layout = layout_of(settings)
    _require_same_kind(layout, settings.source.kind)
    require_same_reading(layout, settings.archive)
    archive = _archive(spark, settings.archive, layout)
    match settings.source.kind:
        case SourceKind.FILES:
            records = archive
        case SourceKind.DELTA:
            records = _columns(_delta_stream(spark, settings, layout), SourceKind.DELTA).unionByName(archive)
        case SourceKind.KAFKA:
            made = follow(spark, layout, _topics(settings.kafka), accept_gaps)
            records = _columns(kafka_stream(spark, settings.kafka, made), SourceKind.KAFKA).unionByName(archive)
    return _without_null_headers(records)


def check_source(spark: SparkSession, settings: Settings) -> None:
    """Return nothing when the source can be read from the stream's offsets; changes nothing.

    Raises:
        SourceMissing, KafkaUnavailable, KafkaRefused, TopicMissing, OffsetsLost: as for `wrapper_stream`.
    """
    layout = layout_of(settings)
    match settings.source.kind:
        case SourceKind.KAFKA:
            require_offsets(spark, layout, _topics(settings.kafka))
        case SourceKind.DELTA:
            _delta_stream(spark, settings, layout)
        case SourceKind.FILES:
            _archive(spark, settings.archive, layout)


def _topics(kafka: KafkaSettings) -> Mapping[str, TopicState]:
    # the client is an extra, and only this source needs it
    from bronze_ingest.kafka.topic_metadata import topics_now

    return topics_now(kafka)


def _archive(spark: SparkSession, archive: ArchiveSettings, layout: Layout) -> DataFrame:
    if archive.path is not None:
        return archive_stream(spark, archive)
    return archive_stream(spark, ArchiveSettings(path=_no_archive(layout)))


def _no_archive(layout: Layout) -> str:
    """Return a folder that Spark lists again and again, and that has no file for it: it passes over this name."""
    here = f"{layout.no_archive}/_empty"
    if not layout.storage.exists(here):
        layout.storage.write(here, b"")
    return layout.no_archive


def _columns(frame: DataFrame, kind: SourceKind) -> DataFrame:
    """Return the frame in the columns of `SOURCE`; what it does not have is NULL."""
    present = {name.lower() for name in frame.columns}
    given: dict[str, SparkColumn] = {"origin": F.lit(kind.value)}
    return frame.select(
        *(
            given.get(column.name, F.col(column.name) if column.name in present else F.lit(None))
            .cast(spark_type(column.type))
            .alias(column.name)
            for column in SOURCE
        )
    )


def _without_null_headers(frame: DataFrame) -> DataFrame:
    """Return the frame with empty lists in place of NULL.

    Spark asks an Arrow batch for its size after each row, for which Arrow goes through all NULL lists up to there:
    5,000 steps for each record, in a batch of 10,000.
    """
    kind = frame.schema["headers"].dataType
    return frame.withColumn("headers", F.coalesce("headers", F.array().cast(kind)))


def _delta_stream(spark: SparkSession, settings: Settings, layout: Layout) -> DataFrame:
    path = settings.source_path
    if not layout.storage.table_exists(path):
        raise SourceMissing(
            f"There is no Delta table of wrappers at {path}.",
            "Run `demux produce` to make one, or name yours in `source.path`.",
            path=path,
        )
    reader = spark.readStream.format("delta").option("skipChangeCommits", "true")
    if settings.source.max_files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", settings.source.max_files_per_batch)
    frame = reader.load(path)
    _require_value(frame.schema, path)
    offered = {"value", *(column.name for column in SOURCE_OPTIONAL)}
    return frame.select(*(F.col(name).alias(name.lower()) for name in frame.columns if name.lower() in offered))


def _require_value(schema: StructType, path: str) -> None:
    types = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
    if types.get("value") not in {"binary", "string"}:
        raise SourceMissing(
            f"The table at {path} has no BINARY column `value`; it has {', '.join(types)}.",
            "Put the wrapper's bytes into a column called `value`.",
            path=path,
        )


def _require_same_kind(layout: Layout, kind: SourceKind) -> None:
    """Check that a checkpoint's own log of offsets was written by this kind of source."""
    begun = read_checkpoint(layout.storage, layout.bronze_checkpoint).begun
    if begun < 0:
        return
    line = source_line(layout.storage.read_text(f"{layout.bronze_checkpoint}/offsets/{begun}"), KAFKA)
    if line is None:
        return
    before = kind_of(line)
    if before is not kind:
        raise SettingsInvalid(
            f"Bronze was filled from `source.kind: {before.value}`, and cannot continue from `{kind.value}`.",
            "Take another root, or fill bronze again with `demux rebuild --bronze`.",
            before=before.value,
        )


def kind_of(line: str) -> SourceKind:
    """Return the kind of the source that wrote this line into a checkpoint's log of offsets.

    Raises:
        CheckpointLost: no source of ours writes such a line.
    """
    if kafka_offsets(line) is not None:
        return SourceKind.KAFKA
    try:
        offset = json.loads(line)
    except ValueError:
        offset = None
    match offset:
        case {"reservoirId": _}:
            return SourceKind.DELTA
        case {"logOffset": _}:
            return SourceKind.FILES
        case _:
            raise CheckpointLost(
                f"The checkpoint of bronze has an offset that is of no Kafka topic, Delta table or archive: {line}.",
                "Put the checkpoint back as it was, or fill bronze again with `demux rebuild --bronze`.",
                line=line,
            )
