"""Every way a command can fail: a condition, a message and a remedy, one sentence each.

A bad row is not an error (it goes to quarantine, see `causes`). An error stops a command or one game.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import ClassVar


class ErrorKind(Enum):
    """Whether the same call may succeed later without a change."""

    TRANSIENT = "transient"
    TERMINAL = "terminal"


class ExitCode(IntEnum):
    """Exit codes of the `demux` command (docs/runbook.md, "Exit codes")."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    GAMES_FAILED = 3
    TRANSIENT = 4
    LOCKED = 5
    UNBALANCED = 6
    UNSEARCHED = 7
    INTERRUPTED = 130


class DemuxError(Exception):
    """A failure that says what happened and what to do about it.

    Attributes:
        condition: the kind of failure in UPPER_SNAKE, stable over releases.
        kind: transient or terminal, decided where the error is made.
        message: one sentence, what happened.
        remedy: one sentence, what to do.
        fields: the values that the sentences were made from.
    """

    condition: ClassVar[str] = "UNEXPECTED"
    kind: ClassVar[ErrorKind] = ErrorKind.TERMINAL
    exit_code: ClassVar[ExitCode] = ExitCode.UNEXPECTED

    def __init__(self, message: str, remedy: str, /, **fields: object) -> None:
        super().__init__(f"[{self.condition}] {message} {remedy}")
        self.message = message
        self.remedy = remedy
        self.fields = fields

    def __reduce__(self) -> tuple[object, ...]:
        # a worker's error reaches the driver
        return (_again, (type(self), self.message, self.remedy, self.fields))


def _again(kind: type[DemuxError], message: str, remedy: str, fields: dict[str, object]) -> DemuxError:
    return kind(message, remedy, **fields)


def exit_code_of(errors: Iterable[DemuxError]) -> ExitCode:
    """Return the exit code of games or tables that failed: TRANSIENT where all of them may succeed later."""
    may_succeed = all(error.kind is ErrorKind.TRANSIENT for error in errors)
    return ExitCode.TRANSIENT if may_succeed else ExitCode.GAMES_FAILED


class SettingsInvalid(DemuxError):
    """Mistakes in `demux.yml`, the environment, the command line, or in what they name; all of them at once."""

    condition = "SETTINGS_INVALID"
    exit_code = ExitCode.USAGE


class ArgumentInvalid(DemuxError):
    """A call from Python names no column of its frame, a column of another type, or options that contradict."""

    condition = "ARGUMENT_INVALID"
    exit_code = ExitCode.USAGE


class SchemaUnknown(DemuxError):
    """The registry answered: it has no schema of this id, or no such subject."""

    condition = "SCHEMA_UNKNOWN"


class SchemaInvalid(DemuxError):
    """The schema's text does not compile, or its message cannot be found."""

    condition = "SCHEMA_INVALID"


class SubjectAmbiguous(DemuxError):
    """A schema id belongs to several subjects that mean different messages, and none of them is the game's own."""

    condition = "SUBJECT_AMBIGUOUS"


class ApprovalNeeded(DemuxError):
    """A schema would change the game's table, and it is not approved yet; the game's rows wait in bronze."""

    condition = "APPROVAL_NEEDED"

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of these schemas."""
        found = self.fields["schema_ids"]
        assert isinstance(found, tuple)
        return found


class NothingToApprove(DemuxError):
    """The game waits for no schema, or the one named is not one of its registry's."""

    condition = "NOTHING_TO_APPROVE"
    exit_code = ExitCode.USAGE


class RegistryUnavailable(DemuxError):
    """The registry gave no usable answer; it may later."""

    condition = "REGISTRY_UNAVAILABLE"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class GameUnknown(DemuxError):
    """No table has a game of this name or key."""

    condition = "GAME_UNKNOWN"
    exit_code = ExitCode.USAGE


class RangeInvalid(DemuxError):
    """A range of days ends before it begins, or bronze has no record of it."""

    condition = "RANGE_INVALID"
    exit_code = ExitCode.USAGE


class RangeRetired(DemuxError):
    """Rows that a table has are not in bronze any more: decoded again from there, they would be lost."""

    condition = "RANGE_RETIRED"
    exit_code = ExitCode.USAGE


class CheckpointLost(DemuxError):
    """A query wrote a table, and its checkpoint is gone, damaged or older: what the query has read is unknown."""

    condition = "CHECKPOINT_LOST"


class PositionLost(DemuxError):
    """A game's table has rows, and does not say how far bronze is decoded into it."""

    condition = "POSITION_LOST"


class BronzeLogTruncated(DemuxError):
    """Bronze's Delta log has been cleaned of the commits that a game has still to read."""

    condition = "BRONZE_LOG_TRUNCATED"


class BronzeRewritten(DemuxError):
    """Files of bronze were rewritten, cut or removed before a game had read all of them."""

    condition = "BRONZE_REWRITTEN"


class TableLost(DemuxError):
    """The checkpoint of a query is there, and the table that it wrote is not."""

    condition = "TABLE_LOST"


class RemovalUnfinished(DemuxError):
    """A `demux destroy` that removes a root's tables or checkpoints was interrupted, or is still at it."""

    condition = "REMOVAL_UNFINISHED"


class TableUnsuited(DemuxError):
    """A table has a feature, such as column mapping, that only Spark knows, and the command works without Spark."""

    condition = "TABLE_UNSUITED"


class TableDamaged(DemuxError):
    """A commit in a table's log, or a file that it names, is missing or cut."""

    condition = "TABLE_DAMAGED"


class RootLocked(DemuxError):
    """Another command works on the same root; two at once would be in each other's way."""

    condition = "ROOT_LOCKED"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.LOCKED


class SessionLost(DemuxError):
    """The Spark Connect server went away, or was started again and does not know our session."""

    condition = "SESSION_LOST"
    exit_code = ExitCode.TRANSIENT


class StorageFailed(DemuxError):
    """The root, or another place that the settings name, cannot be used: full, read-only, forbidden, taken, or gone."""

    condition = "STORAGE_FAILED"
    exit_code = ExitCode.TRANSIENT


class SourceMissing(DemuxError):
    """The source table or archive is not there, or the table has not the column that a wrapper source needs."""

    condition = "SOURCE_MISSING"
    exit_code = ExitCode.USAGE


class SecretMissing(DemuxError):
    """A setting refers to a secret that is not there, or that cannot be read."""

    condition = "SECRET_MISSING"
    exit_code = ExitCode.USAGE


class KafkaUnavailable(DemuxError):
    """No broker answered; one may later."""

    condition = "KAFKA_UNAVAILABLE"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class KafkaRefused(DemuxError):
    """The broker refused us, or we the broker: password, certificate or permission."""

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


class PredicateInvalid(DemuxError):
    """A predicate (`--where`) cannot be read, has something that is not allowed, or does not fit the tables."""

    condition = "PREDICATE_INVALID"
    exit_code = ExitCode.USAGE


class PredicateMatchesAll(DemuxError):
    """A predicate says which rows go for good, and means all rows of a table, or none in particular."""

    condition = "PREDICATE_MATCHES_ALL"
    exit_code = ExitCode.USAGE


class ForgottenWouldReturn(DemuxError):
    """The source may still have records that were forgotten on request, and the command would take them in again."""

    condition = "FORGOTTEN_WOULD_RETURN"


class TaskFailed(DemuxError):
    """The work failed for a reason that no other condition names."""

    condition = "TASK_FAILED"


class ConcurrentChange(DemuxError):
    """Another process or command changed the same table, record or job meanwhile; the same work succeeds later."""

    condition = "CONCURRENT_CHANGE"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class ServiceUnavailable(DemuxError):
    """A store, a workspace or a worker of Spark did not answer, or went away; the same work succeeds later."""

    condition = "SERVICE_UNAVAILABLE"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class CatalogConflict(DemuxError):
    """The catalog has another table under the name of one of ours."""

    condition = "CATALOG_CONFLICT"


class CatalogRefused(DemuxError):
    """The catalog does not let a table have its name, and no row is written without it."""

    condition = "CATALOG_REFUSED"


class PlanRefused(DemuxError):
    """The plan cannot be made, or not be applied safely: it takes away too much, or does not fit what is there."""

    condition = "PLAN_REFUSED"


class DeploymentLocked(DemuxError):
    """Another command changes the same deployment in the workspace."""

    condition = "DEPLOYMENT_LOCKED"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.LOCKED


class WorkspaceUnavailable(DemuxError):
    """The workspace gave no usable answer; it may later."""

    condition = "WORKSPACE_UNAVAILABLE"
    kind = ErrorKind.TRANSIENT
    exit_code = ExitCode.TRANSIENT


class WorkspaceRefused(DemuxError):
    """The workspace answered, and does not let us in or does not do what we ask."""

    condition = "WORKSPACE_REFUSED"
    exit_code = ExitCode.USAGE
