"""The tables under a root: where they are and which columns they have. The contracts between the stages.

Columns are nullable throughout; times are UTC with microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from demux.columns import Array, Column, Map, Primitive, Struct

_HEADERS = Array(Struct((Column("key", Primitive.STRING), Column("value", Primitive.BINARY))))

# where a record came from; `record_id` is unique over all records of one root
POSITION = (
    Column("origin", Primitive.STRING),
    Column("topic", Primitive.STRING),
    Column("partition", Primitive.INT),
    Column("offset", Primitive.BIGINT),
    Column("timestamp", Primitive.TIMESTAMP),
    Column("record_id", Primitive.STRING),
)

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
# message_indexes are `demux.schema_ref.SchemaRef`; further fields of the envelope come before `ingested_at`
BRONZE = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        Column("schema_guid", Primitive.STRING),
        Column("message_indexes", Primitive.STRING),
        Column("payload", Primitive.BINARY),
        *POSITION,
        Column("key", Primitive.BINARY),
        Column("headers", _HEADERS),
        Column("ingested_at", Primitive.TIMESTAMP),
        Column("batch_id", Primitive.BIGINT),
    )
)

# `bytes`: the whole record at stage bronze, the payload at stage silver, where bronze has its key and headers
QUARANTINE = Struct(
    (
        Column("stage", Primitive.STRING),
        Column("cause", Primitive.STRING),
        Column("game_name", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        Column("schema_guid", Primitive.STRING),
        Column("message_indexes", Primitive.STRING),
        *POSITION,
        Column("bytes", Primitive.BINARY),
        Column("key", Primitive.BINARY),
        Column("headers", _HEADERS),
        Column("sentence", Primitive.STRING),
        Column("query_id", Primitive.STRING),
        Column("batch_id", Primitive.BIGINT),
        Column("quarantined_at", Primitive.TIMESTAMP),
    )
)

# the last columns of every silver table, after the message's own
SILVER_ORIGIN = Struct(
    (
        Column("_schema_id", Primitive.INT),
        *(Column(f"_{column.name}", column.type) for column in POSITION),
        Column("_decoded_at", Primitive.TIMESTAMP),
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
        Column("fingerprint", Primitive.STRING),
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

# one row for each task that ran in a round; without a game: a round that ran none
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
    )
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths under one root; `key` is a game's key (`demux.names`), never its name."""

    root: str

    @property
    def bronze(self) -> str:
        """The bronze table."""
        return f"{self.root}/bronze"

    @property
    def quarantine(self) -> str:
        """The one quarantine table of all stages."""
        return f"{self.root}/quarantine"

    @property
    def schemas(self) -> str:
        """The table of schemas in use."""
        return f"{self.root}/control/schemas"

    @property
    def games(self) -> str:
        """The table of deployed games."""
        return f"{self.root}/control/games"

    @property
    def rounds(self) -> str:
        """The table of finished tasks."""
        return f"{self.root}/control/rounds"

    @property
    def topics(self) -> str:
        """The table of topics that were read."""
        return f"{self.root}/control/topics"

    @property
    def gaps(self) -> str:
        """The table of offsets that were lost and given up."""
        return f"{self.root}/control/gaps"

    @property
    def no_archive(self) -> str:
        """An empty folder that stands for an archive where none is named."""
        return f"{self.root}/control/no-archive"

    @property
    def bronze_checkpoint(self) -> str:
        """The checkpoint of the bronze stream."""
        return f"{self.root}/checkpoints/bronze"

    @property
    def logs(self) -> str:
        """The folder of log files."""
        return f"{self.root}/logs"

    def silver(self, key: str) -> str:
        """Return the path of a game's silver table."""
        return f"{self.root}/silver/{key}"

    def silver_checkpoint(self, key: str) -> str:
        """Return the path of the checkpoint of a game's stream."""
        return f"{self.root}/checkpoints/silver/{key}"
