"""Every way a command can fail: a condition, one sentence of cause, one of remedy.

A bad row is not an error (it goes to quarantine, see `demux.causes`). What stands here stops a command or one game.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import ClassVar


class Kind(Enum):
    """Whether the same call may succeed later without anybody changing anything."""

    TRANSIENT = "transient"
    TERMINAL = "terminal"


class ExitCode(IntEnum):
    """Exit codes of the `demux` command (README, "Exit codes")."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    GAMES_FAILED = 3
    TRANSIENT = 4
    LOCKED = 5
    INTERRUPTED = 130


class DemuxError(Exception):
    """A failure that says what happened and what to do about it.

    Attributes:
        condition: the kind of failure in UPPER_SNAKE, stable over releases.
        kind: transient or terminal, decided where the error is made.
        cause: one sentence, what happened.
        remedy: one sentence, what to do.
        fields: the values that the sentences were made from.
    """

    condition: ClassVar[str] = "UNEXPECTED"
    kind: ClassVar[Kind] = Kind.TERMINAL
    exit_code: ClassVar[ExitCode] = ExitCode.UNEXPECTED

    def __init__(self, cause: str, remedy: str, **fields: object) -> None:
        super().__init__(f"[{self.condition}] {cause} {remedy}")
        self.cause = cause
        self.remedy = remedy
        self.fields = fields

    def __reduce__(self) -> tuple[object, ...]:
        # a worker's error reaches the driver
        return (_again, (type(self), self.cause, self.remedy, self.fields))


def _again(kind: type[DemuxError], cause: str, remedy: str, fields: dict[str, object]) -> DemuxError:
    return kind(cause, remedy, **fields)


class SettingsInvalid(DemuxError):
    """Mistakes in `demux.yml`, the environment or the command line; all of them at once."""

    condition = "SETTINGS_INVALID"
    exit_code = ExitCode.USAGE


class SchemaUnknown(DemuxError):
    """The registry answered: it has no schema of this id."""

    condition = "SCHEMA_UNKNOWN"


class SchemaInvalid(DemuxError):
    """The schema's text does not compile, or its message cannot be found."""

    condition = "SCHEMA_INVALID"


class RegistryUnavailable(DemuxError):
    """The registry gave no usable answer; it may later."""

    condition = "REGISTRY_UNAVAILABLE"
    kind = Kind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class GameUnknown(DemuxError):
    """No such game in bronze."""

    condition = "GAME_UNKNOWN"
    exit_code = ExitCode.USAGE


class CheckpointLost(DemuxError):
    """A table was written by a query whose checkpoint is gone, or older than the table."""

    condition = "CHECKPOINT_LOST"


class BronzeLogTruncated(DemuxError):
    """Bronze's log does not reach back to where a game stands."""

    condition = "BRONZE_LOG_TRUNCATED"


class BronzeRewritten(DemuxError):
    """Somebody rewrote files of bronze of which a game had read a part."""

    condition = "BRONZE_REWRITTEN"


class TableLost(DemuxError):
    """The checkpoint of a query is there, and the table that it wrote is not."""

    condition = "TABLE_LOST"


class RemovalUnfinished(DemuxError):
    """The removal of a root's tables or checkpoints was interrupted."""

    condition = "REMOVAL_UNFINISHED"


class TableUnsuited(DemuxError):
    """A table asks something of its writers that the fleet's files do not give."""

    condition = "TABLE_UNSUITED"


class RootLocked(DemuxError):
    """Another command works on the same root."""

    condition = "ROOT_LOCKED"
    kind = Kind.TRANSIENT
    exit_code = ExitCode.LOCKED


class StorageFailed(DemuxError):
    """The root cannot be read or written: full, read-only, or no permission."""

    condition = "STORAGE_FAILED"
    exit_code = ExitCode.TRANSIENT


class SourceMissing(DemuxError):
    """The source table is not there, or has not the columns that a wrapper source needs."""

    condition = "SOURCE_MISSING"
    exit_code = ExitCode.USAGE


class SecretMissing(DemuxError):
    """A setting refers to a secret that is not there, or that cannot be read."""

    condition = "SECRET_MISSING"
    exit_code = ExitCode.USAGE


class KafkaUnavailable(DemuxError):
    """No broker answered; one may later."""

    condition = "KAFKA_UNAVAILABLE"
    kind = Kind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class KafkaRefused(DemuxError):
    """The broker, or we, refused the connection: password, certificate or permission."""

    condition = "KAFKA_REFUSED"
    exit_code = ExitCode.USAGE


class TopicMissing(DemuxError):
    """The broker has no such topic."""

    condition = "TOPIC_MISSING"
    exit_code = ExitCode.USAGE


class OffsetsLost(DemuxError):
    """The broker no longer has records that were not read yet."""

    condition = "OFFSETS_LOST"


class NotAcknowledged(DemuxError):
    """The broker did not acknowledge every record that was sent."""

    condition = "NOT_ACKNOWLEDGED"


class RegistryRefused(DemuxError):
    """The registry answered, and does not let us in."""

    condition = "REGISTRY_REFUSED"
    exit_code = ExitCode.USAGE


class SchemaIncompatible(DemuxError):
    """The registry refuses a new version as incompatible with the ones before."""

    condition = "SCHEMA_INCOMPATIBLE"
    exit_code = ExitCode.USAGE


class RuntimeMissing(DemuxError):
    """Java, Spark or a Spark package that the command needs is not installed."""

    condition = "RUNTIME_MISSING"
    exit_code = ExitCode.USAGE


class DecoderUnsuited(DemuxError):
    """The decoder asked for cannot decode this message without loss."""

    condition = "DECODER_UNSUITED"


class TaskFailed(DemuxError):
    """The work failed for a reason that no other condition names."""

    condition = "TASK_FAILED"


class TaskInterrupted(DemuxError):
    """Another writer was quicker, or a worker went away; the same work succeeds later."""

    condition = "TASK_INTERRUPTED"
    kind = Kind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class DriverDied(DemuxError):
    """The process that ran a cluster's games ended in the middle, again and again; another one may not."""

    condition = "DRIVER_DIED"
    kind = Kind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class CatalogConflict(DemuxError):
    """The catalog has another table under the name of one of ours."""

    condition = "CATALOG_CONFLICT"


class CatalogRefused(DemuxError):
    """The catalog does not let us register a table; its rows are in all the same."""

    condition = "CATALOG_REFUSED"


class PlanRefused(DemuxError):
    """The plan cannot be made or applied safely."""

    condition = "PLAN_REFUSED"


class DeploymentLocked(DemuxError):
    """Another command changes the same deployment in the workspace."""

    condition = "DEPLOYMENT_LOCKED"
    kind = Kind.TRANSIENT
    exit_code = ExitCode.LOCKED


class WorkspaceUnavailable(DemuxError):
    """The workspace gave no usable answer; it may later."""

    condition = "WORKSPACE_UNAVAILABLE"
    kind = Kind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class WorkspaceRefused(DemuxError):
    """The workspace answered, and does not let us in or does not do what we ask."""

    condition = "WORKSPACE_REFUSED"
    exit_code = ExitCode.USAGE
