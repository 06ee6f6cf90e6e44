"""The tables under a root: where they are, which columns they have, and the Spark properties that their content needs.

Columns are nullable throughout; times are UTC with microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from demux.core.columns.types import Array, Column, ColumnType, Map, Primitive, Struct

_HEADERS = Array(Struct((Column("key", Primitive.STRING), Column("value", Primitive.BINARY))))


def _of(name: str, kind: ColumnType, comment: str) -> Column:
    return Column(name, kind, comment=comment)


# where a record came from; `record_id` is unique over all records of one root
POSITION = (
    _of("origin", Primitive.STRING, "Where the record came from: kafka, delta or files."),
    _of("topic", Primitive.STRING, "Topic of the record, where its source has one."),
    _of("partition", Primitive.INT, "Partition of the record in its topic."),
    _of("offset", Primitive.BIGINT, "Offset of the record in its partition."),
    _of("timestamp", Primitive.TIMESTAMP, "Time that the source gives the record, UTC."),
    _of("record_id", Primitive.STRING, "Unique over all records of one root."),
)
_REF = (
    _of("schema_id", Primitive.INT, "Id of the payload's schema in its registry."),
    _of("schema_guid", Primitive.STRING, "GUID of the payload's schema, where the record names it so."),
    _of("message_indexes", Primitive.STRING, "Which message of the schema the payload is, where the record says so."),
)
_KEY = _of("key", Primitive.BINARY, "Key of the record.")

# what a wrapper source may offer besides `value`; what it has not is NULL
SOURCE_OPTIONAL = Struct(
    (
        Column("topic", Primitive.STRING),
        Column("partition", Primitive.INT),
        Column("offset", Primitive.BIGINT),
        Column("timestamp", Primitive.TIMESTAMP),
        Column("key", Primitive.BINARY),
        Column("headers", _HEADERS),
    )
)

# partitioned by game_name; payload is exactly the payload's bytes, without framing; schema_id, schema_guid and
# message_indexes are `demux.core.schemas.ref.SchemaRef`; further fields of the envelope come before `ingested_at`
BRONZE = Struct(
    (
        _of("game_name", Primitive.STRING, "The game that sent the record, exactly as the wrapper has it."),
        *_REF,
        _of("payload", Primitive.BINARY, "The payload's bytes, without framing, never changed."),
        *POSITION,
        _KEY,
        _of("headers", _HEADERS, "Headers of the record."),
        _of("ingested_at", Primitive.TIMESTAMP, "When the record was taken in, UTC."),
        _of("batch_id", Primitive.BIGINT, "Number of the batch that took it in."),
    )
)

# `bytes`: the whole record at stage bronze, the payload at stage silver, where bronze has its key and headers
QUARANTINE = Struct(
    (
        _of(
            "stage",
            Primitive.STRING,
            "The stage that quarantined the record: bronze (no wrapper) or silver (no decoding).",
        ),
        _of("cause", Primitive.STRING, "Why, from a closed list."),
        _of("game_name", Primitive.STRING, "The game, where that is known."),
        *_REF,
        *POSITION,
        _of("bytes", Primitive.BINARY, "At stage bronze the whole record, at stage silver the payload."),
        _KEY,
        _of("headers", _HEADERS, "Headers of the record."),
        _of("sentence", Primitive.STRING, "Why, in a sentence."),
        _of("query_id", Primitive.STRING, "The stream, or the id of positions, that set it aside."),
        _of("batch_id", Primitive.BIGINT, "Number of the batch, or of the position."),
        _of("quarantined_at", Primitive.TIMESTAMP, "When it was quarantined, UTC."),
    )
)

# every row that `demux quarantine drop` took out of quarantine, without its bytes: the ledger counts it
DROPPED = Struct(
    (
        Column("stage", Primitive.STRING),
        Column("cause", Primitive.STRING),
        Column("game_name", Primitive.STRING),
        *POSITION,
        Column("query_id", Primitive.STRING),
        Column("quarantined_at", Primitive.TIMESTAMP),
        Column("dropped_at", Primitive.TIMESTAMP),
    )
)

# every row that was taken out of bronze for good, without its bytes: the ledger counts it
# (reason: `removal_reason.Reason`; `batch_id` is bronze's; `request` is the id of the run that removed it)
REMOVED = Struct(
    (
        Column("reason", Primitive.STRING),
        Column("game_name", Primitive.STRING),
        *POSITION,
        Column("batch_id", Primitive.BIGINT),
        Column("request", Primitive.STRING),
        Column("removed_at", Primitive.TIMESTAMP),
    )
)

# how much a request to forget a person removed of each game, once it is done; without a game: of records that have none
FORGET = Struct(
    (
        Column("request", Primitive.STRING),
        Column("game_name", Primitive.STRING),
        Column("rows_silver", Primitive.BIGINT),
        Column("rows_bronze", Primitive.BIGINT),
        Column("rows_quarantine", Primitive.BIGINT),
        Column("finished_at", Primitive.TIMESTAMP),
    )
)

# the last columns of every silver table, after the message's own
SILVER_ORIGIN = Struct(
    (
        _of("_schema_id", Primitive.INT, "Id of the schema that the row was written with, in its registry."),
        *(replace(column, name=f"_{column.name}") for column in POSITION),
        _of(
            "_rescued", Primitive.BINARY, "What the payload holds beyond these columns, as Protobuf; NULL for nothing."
        ),
        _of("_decoded_at", Primitive.TIMESTAMP, "When the row was decoded, UTC."),
    )
)
SILVER_RESERVED = frozenset(column.name for column in SILVER_ORIGIN)

# every schema that was ever used, by registry and id; `guid` where rows named it so; `message` without settings
SCHEMAS = Struct(
    (
        Column("registry", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        Column("guid", Primitive.STRING),
        Column("subject", Primitive.STRING),
        Column("version", Primitive.INT),
        Column("message", Primitive.STRING),
        Column("path", Primitive.STRING),
        Column("text", Primitive.STRING),
        Column("references", Map(Primitive.STRING, Primitive.STRING)),
        Column("descriptor_set", Primitive.BINARY),
        Column("first_used_at", Primitive.TIMESTAMP),
    )
)

# every game ever seen in bronze; `cluster` is NULL while it waits to be admitted
GAMES = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("cluster", Primitive.STRING),
        Column("plan_id", Primitive.STRING),
        Column("since", Primitive.TIMESTAMP),
    )
)

# where the jobs of a workspace have each game: a copy of the installer's record (`deployment_record`);
# `game_name` is NULL where no more is known than the key that the task tells
DEPLOYMENTS = Struct(
    (
        Column("deployment", Primitive.STRING),
        Column("game_name", Primitive.STRING),
        Column("job", Primitive.STRING),
        Column("job_id", Primitive.BIGINT),
        Column("task", Primitive.STRING),
        Column("cluster", Primitive.STRING),
        Column("plan_id", Primitive.STRING),
        Column("since", Primitive.TIMESTAMP),
        Column("record_version", Primitive.BIGINT),
    )
)

# the topics that were read, and the ranges of offsets that were lost and given up
TOPICS = Struct(
    (
        Column("topic", Primitive.STRING),
        Column("topic_id", Primitive.STRING),
        Column("since", Primitive.TIMESTAMP),
    )
)
GAPS = Struct(
    (
        Column("topic", Primitive.STRING),
        Column("topic_id", Primitive.STRING),
        Column("partition", Primitive.INT),
        Column("first_offset", Primitive.BIGINT),
        Column("end_offset", Primitive.BIGINT),
        Column("reason", Primitive.STRING),
        Column("accepted_at", Primitive.TIMESTAMP),
    )
)

# the schemas that a person approved, of games whose tables ask before they change
APPROVALS = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("registry", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        Column("approved_at", Primitive.TIMESTAMP),
    )
)

# one row for each task that ran in a round; without a game: a round that ran none (`freshness`: `Freshness.to_column`)
ROUNDS = Struct(
    (
        Column("round_id", Primitive.STRING),
        Column("game_name", Primitive.STRING),
        Column("outcome", Primitive.STRING),
        Column("bronze_version", Primitive.BIGINT),
        Column("rows_in", Primitive.BIGINT),
        Column("rows_silver", Primitive.BIGINT),
        Column("rows_quarantined", Primitive.BIGINT),
        Column("schema_ids", Array(Primitive.INT)),
        Column("seconds", Primitive.DOUBLE),
        Column("condition", Primitive.STRING),
        Column("sentence", Primitive.STRING),
        Column("finished_at", Primitive.TIMESTAMP),
        Column("freshness", Array(Primitive.BIGINT)),
    )
)

# what backfills do: each day of each game has a row for each state that it came to, the newest counts
# (`deserializer.redecode.backfill_plan`); days are written as 2026-01-31, `games` is empty where all are chosen
BACKFILLS = Struct(
    (
        Column("backfill_id", Primitive.STRING),
        Column("games", Array(Primitive.STRING)),
        Column("first_day", Primitive.STRING),
        Column("last_day", Primitive.STRING),
        Column("begun_at", Primitive.TIMESTAMP),
        Column("game_name", Primitive.STRING),
        Column("day", Primitive.STRING),
        Column("state", Primitive.STRING),
        Column("rows", Primitive.BIGINT),
        Column("rows_in", Primitive.BIGINT),
        Column("rows_silver", Primitive.BIGINT),
        Column("rows_quarantined", Primitive.BIGINT),
        Column("seconds", Primitive.DOUBLE),
        Column("condition", Primitive.STRING),
        Column("sentence", Primitive.STRING),
        Column("recorded_at", Primitive.TIMESTAMP),
    )
)


TABLE_CONF: Mapping[str, str] = {
    # 10,000 records of 10 MB in one batch would fill every memory; Spark 3.4 does not know it
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    "spark.sql.session.timeZone": "UTC",
    # `${...}` in a name must stay what it is
    "spark.sql.variable.substitute": "false",
    # Timestamp reaches back to year 1, which the defaults refuse to write
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
