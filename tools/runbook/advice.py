"""What somebody on call wants to know of each error condition, beyond what the error itself says. Data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from demux.core import errors
from demux.core.errors import DemuxError


class Stops(Enum):
    """What does not continue; the value is what the page calls it."""

    COMMAND = "the command"
    BRONZE = "bronze"
    GAME = "a game"
    DEPLOYMENT = "an installer"


@dataclass(frozen=True, slots=True)
class Advice:
    """What a condition stops, what then happens by itself, and what to do.

    Attributes:
        stops: what does not continue.
        by_itself: what the tool did and will do, and what became of the records.
        remedy: what to do, the safest first; where the error itself says it best, what to know besides.
    """

    stops: tuple[Stops, ...]
    by_itself: str
    remedy: str


_ANYWHERE = (Stops.COMMAND, Stops.BRONZE, Stops.GAME)

ADVICE: dict[type[DemuxError], Advice] = {
    errors.SettingsInvalid: Advice(
        (Stops.COMMAND, Stops.DEPLOYMENT),
        "Nothing was written to a table. Jobs of a deployment run on with the settings that they were installed with.",
        "Correct each mistake that it lists, with line, allowed values and the nearest right name. `demux init FILE` "
        "writes every setting with its default. For a deployment, `demux apply` again.",
    ),
    errors.SchemaUnknown: Advice(
        (Stops.COMMAND,),
        "No stream stops for it: such records go to quarantine as [`UNKNOWN_SCHEMA`](#unknown_schema).",
        "Look with `demux schemas list` whether the registry is the one that the producer uses (`registry.url`, "
        "`registries`), and whether the schema is registered there.",
    ),
    errors.SchemaInvalid: Advice(
        (Stops.COMMAND,),
        "No stream stops for it: such records go to quarantine as [`INVALID_SCHEMA`](#invalid_schema).",
        "Correct the text, the `registry.yml`, or [which message is meant](kafka.md#which-message). Try it by `demux "
        "schemas check FILE`, then replay.",
    ),
    errors.ApprovalNeeded: Advice(
        (Stops.GAME,),
        "Nothing of the batch is written: the game's rows wait in bronze, with those of its older schemas. Other games "
        "continue.",
        "Look at the change (`demux schemas diff OLD NEW`), then `demux schemas approve --game NAME`; rounds may "
        "continue meanwhile. If it is not wanted, set the game's mode to `freeze` "
        "([schema changes](schema-changes.md)).",
    ),
    errors.SubjectAmbiguous: Advice(
        (Stops.GAME, Stops.COMMAND),
        "Nothing of the game is written; its rows wait in bronze. Other games continue.",
        "`demux schemas show ID` lists the subjects. Name the game's own in `games.subjects_of`, or the message of one "
        "of them in `registry.messages` ([which subject](kafka.md#which-subject)); the next round continues.",
    ),
    errors.NothingToApprove: Advice(
        (Stops.COMMAND,),
        "Nothing was written down.",
        "`demux status` says what a game waits for. `--schema ID` approves one that is to come, once it is registered; "
        "ids are those of the game's own registry.",
    ),
    errors.RegistryUnavailable: Advice(
        (Stops.GAME, Stops.COMMAND),
        "Schemas in `control/schemas` are not asked for again, so only games with a schema that is new here wait, with "
        "their rows in bronze.",
        "See whether the registry runs and can be reached from the driver. Where it is slow, raise "
        "`registry.timeout_s`; where the address is wrong, correct `registry.url`.",
    ),
    errors.RegistryRefused: Advice(
        (Stops.GAME, Stops.COMMAND),
        "Schemas in `control/schemas` are not asked for again, so only games with a schema that is new here wait, with "
        "their rows in bronze.",
        "Renew the password, token or certificate behind the section `registry`, or have the permission granted. A "
        "command reads its secrets when it begins: one that continues (`--every`) must be started again.",
    ),
    errors.SchemaIncompatible: Advice(
        (Stops.COMMAND,),
        "The registry has no new version, and no event was sent with it.",
        "See what differs: `demux schemas check FILE`. Change the schema, or the subject's compatibility mode.",
    ),
    errors.GameUnknown: Advice(
        (Stops.COMMAND,),
        "Nothing was changed.",
        "Take the name from `demux status`: upper and lower case and blanks count, so quote it. A new game is there "
        "after the next `demux ingest`. A task of a job has the option `--ignore-unknown`, and then nothing to do.",
    ),
    errors.RangeInvalid: Advice(
        (Stops.COMMAND,),
        "Nothing was changed.",
        "Days are those of the records' own times, in UTC, and both ends belong to the range. Try it with `--dry-run` "
        "until it means what it should ([backfill](repair.md)).",
    ),
    errors.RangeRetired: Advice(
        (Stops.COMMAND, Stops.GAME),
        "Nothing of the game was changed: its table still has the rows that bronze gave up by age "
        "([`maintain.bronze_days`](maintenance.md#bronze-by-age)). Other games of the same backfill are done.",
        "`demux backfill --game NAME --from DAY` with the day that it names decodes all that bronze still has, and "
        "leaves the older rows as they are.",
    ),
    errors.CheckpointLost: Advice(
        (Stops.BRONZE,),
        "Nothing is written: the query would begin anew and double every row, or leave new ones out. The records wait.",
        "If the checkpoint was moved away or restored from a backup, put the newest one back. Otherwise `demux rebuild "
        "--bronze` makes bronze again from what the source still has, and [refuses](kafka.md#lost-offsets) if that is "
        "less. A game needs no checkpoint: its position is in its table.",
    ),
    errors.TableLost: Advice(
        (Stops.GAME, Stops.BRONZE),
        "Nothing is written: a checkpoint says that the table had rows, and these would not come back.",
        "Put the table back if you can (from a backup of its folder). Otherwise `demux rebuild --game NAME`, or "
        "`demux rebuild --bronze`, as for [`CHECKPOINT_LOST`](#checkpoint_lost).",
    ),
    errors.PositionLost: Advice(
        (Stops.GAME,),
        "Nothing is written: without a position every row of bronze would be decoded once more, beside those that are "
        "there. It is a transaction in the table's log: a copy of the rows alone does not have it, nor does a table "
        "that an older version of this program has written.",
        "Put back the table's folder as it was, or `demux rebuild --game NAME`.",
    ),
    errors.BronzeLogTruncated: Advice(
        (Stops.GAME,),
        "Nothing is written. The game's rows are in bronze; only which of them are new is not known any more.",
        "`demux rebuild --game NAME`. So that it stays away, let no game stand still longer than bronze keeps its log "
        "(`delta.logRetentionDuration`, 30 days unless set).",
    ),
    errors.BronzeRewritten: Advice(
        (Stops.GAME,),
        "Nothing of these files is written: some of their rows may be in the game's table already.",
        "`demux rebuild --game NAME`: the table then has what bronze has now, without rows that were deleted there. "
        "Run `OPTIMIZE` and `DELETE` on bronze when `demux status` says that no rows wait, and `VACUUM` with a "
        "retention longer than any game stands still.",
    ),
    errors.TableUnsuited: Advice(
        (Stops.GAME,),
        "Nothing is written; the rows wait in bronze.",
        "Set what it names: `run.sink: auto` lets Spark write such a table in the same round; `run.engine: stream` "
        "reads such a bronze; `demux reconcile --spark` counts it. All can be changed at any time.",
    ),
    errors.TableDamaged: Advice(
        (Stops.COMMAND, Stops.GAME),
        "Nothing is written to the table. `demux status` shows the others, with a note for this one.",
        "Restore the files that it names from a backup of the root. Without one, remove the folder of the table: "
        "`demux rebuild --game NAME` makes a silver table again, `demux rebuild --bronze` makes bronze again.",
    ),
    errors.RemovalUnfinished: Advice(
        (Stops.COMMAND,),
        "Every command that works on this root or looks at it refuses, as half of its tables may be gone.",
        "Run the `demux destroy` that it names again, to its end. To keep what is left, ask somebody who knows the "
        "tables first: there is no way back.",
    ),
    errors.RootLocked: Advice(
        (Stops.COMMAND,),
        "Nothing was begun. The lock belongs to a process: it is free once that ends, however it ends.",
        "See which command and process it names. `--wait` waits for it. Do not remove the lock's file.",
    ),
    errors.StorageFailed: Advice(
        _ANYWHERE,
        "What was not committed is in no table; the next run does it again, exactly once.",
        "Free space, grant the permission, or put the file back that it names, then run the same command again.",
    ),
    errors.SourceMissing: Advice(
        (Stops.BRONZE,),
        "Nothing is taken in; the tables are as they were.",
        "Correct `source.path` or `archive.path`, or make what they name: a Delta table with a BINARY column `value`, "
        "a folder.",
    ),
    errors.SecretMissing: Advice(
        _ANYWHERE,
        "Nothing was sent anywhere, and the secret's value stands in no log.",
        "Set the variable, file or [workspace secret](kafka.md#secrets) where the command runs: on a cluster, that is "
        "its driver. Whom the job runs as needs READ on the secret's scope.",
    ),
    errors.KafkaUnavailable: Advice(
        (Stops.BRONZE, Stops.COMMAND),
        "Nothing is taken in, and nothing is lost as long as Kafka keeps it.",
        "See whether the broker runs and can be reached from the driver, by this host, port and "
        "`kafka.security_protocol`. Where it is slow, raise `kafka.connect_timeout_s`. Compare the topic's retention "
        "with how long that may take.",
    ),
    errors.KafkaRefused: Advice(
        (Stops.BRONZE, Stops.COMMAND),
        "Nothing is taken in, and nothing is lost as long as Kafka keeps it.",
        "Renew the password, token or certificate behind the section `kafka` ([security](kafka.md#security)), or have "
        "the ACL granted; then start the command again.",
    ),
    errors.TopicMissing: Advice(
        (Stops.BRONZE,),
        "Nothing is taken in. A topic that was read before and is gone is [`OFFSETS_LOST`](#offsets_lost).",
        "Make the topic, correct `kafka.topics` or `kafka.topic_pattern`, or have DESCRIBE granted: a broker hides "
        "what one may not see.",
    ),
    errors.OffsetsLost: Advice(
        (Stops.BRONZE, Stops.COMMAND),
        "Nothing is taken in, also from topics that lost nothing; the tables are as they were.",
        "[Each reason and how it continues](kafka.md#lost-offsets). If the records are elsewhere (a mirror, an "
        "archive), bring them in as an archive. Then `demux ingest --accept-gaps`, once: it writes the "
        "gap into `control/gaps`.",
    ),
    errors.NotAcknowledged: Advice(
        (Stops.COMMAND,),
        "`demux produce` stopped in the middle of a batch. The flow is not concerned.",
        "Run it again: some events of the batch may come twice, and others not.",
    ),
    errors.RuntimeMissing: Advice(
        (Stops.COMMAND, Stops.GAME),
        "Nothing was begun.",
        "Install what it names: Java 17, or the package, by `make setup`, pip or `spark.packages`. The reason of Spark "
        "itself is in `logs/spark.log`.",
    ),
    errors.DecoderUnsuited: Advice(
        (Stops.GAME,),
        "Nothing is written; the rows wait in bronze.",
        "Set `decoder: auto` (or `arrow`), which decodes every message. `from_protobuf` is never needed.",
    ),
    errors.PredicateInvalid: Advice(
        (Stops.COMMAND,),
        "Nothing was removed. The predicate is parsed, and no text of it reaches a table, a log or SQL.",
        "It says at which character, or which columns are near. [Forgetting](forget.md) lists what it may "
        "have; `--dry-run` shows what that means.",
    ),
    errors.PredicateMatchesAll: Advice(
        (Stops.COMMAND,),
        "Nothing was removed.",
        "Look at the counts of `--dry-run`. Usually a quote is missing, or a `%` is all of a pattern. `--force` where "
        "a whole table is meant.",
    ),
    errors.ForgottenWouldReturn: Advice(
        (Stops.COMMAND,),
        "Nothing was changed: bronze is as it was, without the forgotten records.",
        "Remove them from the source first (Kafka: wait for its retention, or delete them; archives: rewrite them), "
        "for [`demux forget`](forget.md) does not touch it. Then give the command with `--accept-return`, and forget "
        "them once more, should any have come back.",
    ),
    errors.TaskFailed: Advice(
        _ANYWHERE,
        "What was not committed is in no table; the next run does it again, exactly once.",
        "Find the trace in `logs/demux.log`, and around its time in `logs/spark.log`. Run the command once more; if it "
        "fails the same way, that is a mistake in this tool: report both, with the versions.",
    ),
    errors.TaskInterrupted: Advice(
        (Stops.GAME, Stops.BRONZE, Stops.DEPLOYMENT),
        "What was not committed is in no table; the next try does it again, exactly once.",
        "Run the same command again. If it comes again and again, look for another writer of the same tables, "
        "or for workers that die (memory, spot machines).",
    ),
    errors.CatalogConflict: Advice(
        (Stops.GAME,),
        "The game's rows are in its table at its path; only the name in the catalog leads elsewhere. Of bronze's "
        "tables it is a warning only.",
        "Rename or drop the other table if nothing uses it, or name another `databricks.silver_schema` or "
        "`bronze_schema`. The next run registers the table.",
    ),
    errors.CatalogRefused: Advice(
        (Stops.GAME, Stops.COMMAND),
        "The game's rows are in its table at its path; only the catalog does not show it. Of bronze's tables it is a "
        "warning only.",
        "Have granted what [the catalog](databricks.md#the-catalog) asks for. Without a catalog, as on your own "
        "machine: `--set databricks.catalog=null`. The next run registers the table.",
    ),
    errors.PlanRefused: Advice(
        (Stops.DEPLOYMENT, Stops.COMMAND),
        "Nothing was changed, unless lines before it say what was done; jobs that are there run on as they are.",
        "Read the plan. `--force` only for the reason that it names, and only when that is intended; otherwise "
        "correct the settings, or make the plan again "
        "([when an apply stops](databricks.md#when-an-apply-stops-midway)).",
    ),
    errors.DeploymentLocked: Advice(
        (Stops.DEPLOYMENT,),
        "Nothing was changed. The lock frees itself 15 minutes after the other's last sign of life; after a kill on "
        "this machine it does not hold the same user up.",
        "Wait. `--take-over` only when you know that the other one is dead "
        "([two installers](databricks.md#two-installers-at-once)).",
    ),
    errors.WorkspaceUnavailable: Advice(
        (Stops.DEPLOYMENT,),
        "Each call was tried 6 times. What was done before stays and is on record; jobs that are there run on.",
        "Run the same command again, later. It begins with what is there, and does nothing twice.",
    ),
    errors.WorkspaceRefused: Advice(
        (Stops.DEPLOYMENT,),
        "What was done before stays and is on record; jobs that are there run on.",
        "A valid login, or the [permission](databricks.md#permissions) that it names; then the same command again.",
    ),
}
