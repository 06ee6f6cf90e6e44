"""The Kafka source: Spark's own, with what it must never do by default turned off."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.kafka.client_options import ClientOptions, java_options
from demux.core.settings.source import KafkaSettings
from demux.core.settings.types import epoch_ms
from demux.core.spark.session_conf import get_conf, set_conf
from demux.core.tables import SOURCE_OPTIONAL

_LOG = logging.getLogger("demux")


def kafka_stream(spark: SparkSession, kafka: KafkaSettings, incarnations: Mapping[str, int]) -> DataFrame:
    """Return a streaming frame of the topics' records: value, the columns of `SOURCE_OPTIONAL`, record_id.

    Args:
        incarnations: how often a topic of this name was made, where that is more than once; its offsets restart
            each time, and its record ids must not.

    Raises:
        SettingsInvalid, SecretMissing: as for `demux.core.kafka.client_options.java_options`.
    """
    options = java_options(kafka, os.environ)
    _hide_in_plans(spark, options)
    reader = spark.readStream.format("kafka").options(**{**stream_options(kafka), **options.reveal()})
    optional = [F.col(column.name) for column in SOURCE_OPTIONAL]
    return reader.load().select("value", *optional, _record_id(incarnations).alias("record_id"))


def stream_options(kafka: KafkaSettings) -> dict[str, str]:
    """Return the options of Spark's source itself; what they decide on the first run they never decide again."""
    given = {
        "subscribe": ",".join(kafka.topics) if kafka.topic_pattern is None else None,
        # Spark takes a topic in whose name the pattern is found anywhere
        "subscribePattern": None if kafka.topic_pattern is None else f"^(?:{kafka.topic_pattern})$",
        "startingOffsets": kafka.starting_offsets,
        "startingTimestamp": None if kafka.starting_timestamp is None else str(epoch_ms(kafka.starting_timestamp)),
        # a partition without records of that time has nothing to say yet
        "startingOffsetsByTimestampStrategy": "latest",
        "maxOffsetsPerTrigger": None if kafka.max_offsets_per_batch is None else str(kafka.max_offsets_per_batch),
        "minPartitions": None if kafka.min_partitions is None else str(kafka.min_partitions),
        # a gap is accepted before the stream begins, or not at all
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "kafkaConsumer.pollTimeoutMs": str(int(kafka.connect_timeout_s * 1000)),
        "fetchOffset.numRetries": "1",
        # what a producer took back was never sent; `kafka.options` may say otherwise
        "kafka.isolation.level": "read_committed",
        # after each poll Spark asks where the partition begins and ends, for which the consumer drops what it has
        # fetched ahead: few polls, not one for 500 records
        "kafka.max.poll.records": "20000",
        # and that question waits behind a fetch at the partition's end, by default half a second in every task
        "kafka.fetch.max.wait.ms": "10",
        **_timeouts(kafka),
    }
    return {name: value for name, value in given.items() if value is not None}


def _timeouts(kafka: KafkaSettings) -> dict[str, str]:
    """Return what a batch waits for a broker that went away; by default it is a minute for each question."""
    names = ("request.timeout.ms", "default.api.timeout.ms")
    # the client refuses a second one that is shorter than the first
    if any(name in kafka.options for name in names):
        return {}
    return {f"kafka.{name}": str(int(kafka.connect_timeout_s * 1000)) for name in names}


def _hide_in_plans(spark: SparkSession, options: ClientOptions) -> None:
    """Have Spark leave the secret options out of its plans, which show all options of a source; a second call is safe.

    Spark hides by itself only what has a telling name, and nothing where a plan is not resolved yet.
    """
    shared = get_conf(spark, "spark.redaction.string.regex")
    texts, named = "spark.sql.redaction.string.regex", "spark.sql.redaction.options.regex"
    for conf, before, pattern in (
        (texts, get_conf(spark, texts, shared), options.secrets_in_plans()),
        (named, get_conf(spark, named), options.secret_names()),
    ):
        is_shown = pattern is not None and pattern not in (before or "")
        if is_shown and not set_conf(spark, conf, f"{before}|{pattern}" if before else str(pattern)):
            _LOG.warning("this compute does not let %s be set: plans may show options of Kafka", conf)


def _record_id(incarnations: Mapping[str, int]) -> SparkColumn:
    """Return the record ids of topics that were made again; NULL for all others, whose position is id enough."""
    # a topic's name never holds an `@`
    name = F.lit(None).cast("string")
    for topic, number in sorted(incarnations.items()):
        name = F.when(F.col("topic") == topic, f"{topic}@{number}").otherwise(name)
    parts = F.concat_ws("/", name, F.col("partition").cast("string"), F.col("offset").cast("string"))
    return F.when(name.isNotNull(), parts)
