"""The tables under a root: where they are and which columns they have. The contracts between the stages.

Columns are nullable throughout; times are UTC with microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from demux.columns import Array, Column, ColumnType, Map, Primitive, Struct
from demux.storage.files import Storage

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
# message_indexes are `demux.schema_ref.SchemaRef`; further fields of the envelope come before `ingested_at`
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
        _of("stage", Primitive.STRING, "Where the record was set aside: bronze (no wrapper) or silver (no decoding)."),
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
        _of("quarantined_at", Primitive.TIMESTAMP, "When it was set aside, UTC."),
    )
)

# every row that `demux quarantine drop` took out of quarantine, without its bytes: the ledger goes on counting it
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

# every row that was taken out of bronze for good, without its bytes: the ledger goes on counting it
# (reason: `demux.removed.Reason`; `batch_id` is bronze's; `request` is the id of the run that removed it)
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

# how much a request to forget somebody removed of each game, once it is done; without a game: of records that have none
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

# where the jobs of a workspace have each game: a copy of the installer's record (`demux.deployment_record`);
# `game_name` is NULL where nobody knows more than the key that the task tells
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

# the schemas that somebody approved, of games whose tables ask before they change
APPROVALS = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("registry", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        Column("approved_at", Primitive.TIMESTAMP),
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

# what backfills do: each day of each game has a row for each state that it came to, the newest counts
# (`deserializer.days`); days are written as 2026-01-31, `games` is empty where all are meant
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

# the last columns of every table of sessions, after those that its events have in common (`demux.sessions`)
SESSION = Struct(
    (
        _of("session_start", Primitive.TIMESTAMP, "Time of the first event."),
        _of("session_end", Primitive.TIMESTAMP, "Time of the last event."),
        _of("events", Primitive.BIGINT, "How many events there were."),
        _of("first_record_id", Primitive.STRING, "Record of the first event."),
        _of("last_record_id", Primitive.STRING, "Record of the last event."),
        _of("_closed_by", Primitive.STRING, "What ended it: watermark or flush; NULL while it is open."),
    )
)

# one row for each batch that made sessions, written before them: each row of silver is in a session, late or untimed
SESSION_BATCHES = Struct(
    (
        Column("game_name", Primitive.STRING),
        Column("query_id", Primitive.STRING),
        Column("batch_id", Primitive.BIGINT),
        Column("rows_in", Primitive.BIGINT),
        Column("rows_late", Primitive.BIGINT),
        Column("rows_untimed", Primitive.BIGINT),
        Column("late_before", Primitive.TIMESTAMP),
        Column("watermark", Primitive.TIMESTAMP),
        Column("decided_at", Primitive.TIMESTAMP),
    )
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths under one root; `key` is a game's key (`demux.names`), never its name.

    Attributes:
        root: a folder or URI.
        storage: how its files are reached without Spark.
    """

    root: str
    storage: Storage = field(default_factory=Storage)

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
    def deployments(self) -> str:
        """The table of games in the jobs of a workspace."""
        return f"{self.root}/control/deployments"

    @property
    def rounds(self) -> str:
        """The table of finished tasks."""
        return f"{self.root}/control/rounds"

    @property
    def approvals(self) -> str:
        """The table of approved schemas."""
        return f"{self.root}/control/approvals"

    @property
    def topics(self) -> str:
        """The table of topics that were read."""
        return f"{self.root}/control/topics"

    @property
    def gaps(self) -> str:
        """The table of offsets that were lost and given up."""
        return f"{self.root}/control/gaps"

    @property
    def dropped(self) -> str:
        """The table of rows that were dropped from quarantine."""
        return f"{self.root}/control/dropped"

    @property
    def removed(self) -> str:
        """The table of rows that were taken out of bronze."""
        return f"{self.root}/control/removed"

    @property
    def backfills(self) -> str:
        """The table of backfills, day by day."""
        return f"{self.root}/control/backfills"

    @property
    def maintenance(self) -> str:
        """The file that says when the tables were maintained, and what of it is under way."""
        return f"{self.root}/control/maintenance.json"

    @property
    def session_batches(self) -> str:
        """The table of batches that made sessions."""
        return f"{self.root}/control/sessions"

    @property
    def forget(self) -> str:
        """The table of requests to forget somebody that are done."""
        return f"{self.root}/control/forget"

    @property
    def removal(self) -> str:
        """The file that says what `demux destroy` removes, until it has."""
        return f"{self.root}/control/removal.json"

    @property
    def no_archive(self) -> str:
        """An empty folder that stands for an archive where none is named; a root in a store has none."""
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

    def sessions(self, key: str) -> str:
        """Return the path of a game's table of sessions."""
        return f"{self.root}/sessions/{key}"

    def sessions_checkpoint(self, key: str) -> str:
        """Return the path of the checkpoint of the stream that makes a game's sessions."""
        return f"{self.root}/checkpoints/sessions/{key}"
