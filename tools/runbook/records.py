"""What somebody on call wants to know of each cause of quarantine, difference of the ledger and exit code. Data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from demux.core.causes import Cause, Stage
from demux.core.errors import ExitCode
from demux.operations.reconcile.balance import LedgerFault


class Replay(Enum):
    """Whether `demux quarantine replay` can bring records of a cause into silver."""

    HELPS = "helps"
    SELDOM = "seldom helps"
    NEVER = "cannot help"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Of a cause: which stage sets such records aside, which ones, whether a replay can help, and what to do."""

    stage: Stage
    meaning: str
    replay: Replay
    remedy: str


def quarantined(cause: Cause) -> Quarantined:
    """Return what there is to know of a cause."""
    match cause:
        case Cause.MALFORMED_FILE:
            return Quarantined(
                Stage.BRONZE,
                "a piece of an archived file that is no record; the sentence has the file and the bytes",
                Replay.NEVER,
                "If all of a file is here, correct `archive.format` and give the file another name: then it is read as "
                "a new one. Otherwise put the corrected piece alone into a new file, or its neighbours come twice.",
            )
        case Cause.MALFORMED_WRAPPER:
            return Quarantined(
                Stage.BRONZE,
                "no value, not a wrapper, not the frame that `framing.wrapper` says, or a schema id above "
                "2,147,483,647 (31 bits)",
                Replay.NEVER,
                _SETTING.format("`wrapper` and `framing.wrapper`"),
            )
        case Cause.INVALID_GAME_NAME:
            return Quarantined(
                Stage.BRONZE,
                "absent, empty, too long, white space alone, control characters, `__HIVE_DEFAULT_PARTITION__`, or a "
                "number without a name in the envelope's enum",
                Replay.NEVER,
                _SETTING.format("`wrapper.game_field` and `games.max_name_bytes`"),
            )
        case Cause.MALFORMED_FRAME:
            return Quarantined(
                Stage.BRONZE,
                "not the frame that `framing.payload` says, before the payload or in the header",
                Replay.NEVER,
                _SETTING.format("`framing.payload`"),
            )
        case Cause.SCHEMA_ID_CONFLICT:
            return Quarantined(
                Stage.BRONZE,
                "the wrapper names one schema id and the frame another",
                Replay.NEVER,
                _SETTING.format("`framing.payload` and the wrapper's field of the schema id"),
            )
        case Cause.UNKNOWN_SCHEMA:
            return Quarantined(
                Stage.SILVER,
                "no schema id, or no schema of this id or GUID; replay once it is registered",
                Replay.HELPS,
                "Have the schema registered under this very id (`demux schemas list`), or name the registry that the "
                "producer uses, then replay. Records without any schema id stay: correct the producer.",
            )
        case Cause.INVALID_SCHEMA:
            return Quarantined(
                Stage.SILVER,
                "the schema does not compile, is no Protobuf, or has not the message meant; replay once it is "
                "corrected",
                Replay.HELPS,
                "Correct the schema in the registry, an import that it lacks, or "
                "[which message is meant](kafka.md#which-message), then replay.",
            )
        case Cause.SCHEMA_CONFLICT:
            return Quarantined(
                Stage.SILVER,
                "a field changed its kind and does not fit its column, the row holds another message than the table, "
                "or its schema is another game's",
                Replay.SELDOM,
                "Where the sentence names a subject, the producer wrote the id of another game's schema: correct it, "
                "or give the subject to the game ([which subject](kafka.md#which-subject)), then replay. Where a table "
                "began with such a row (its columns are those of another game), `demux rebuild --game NAME` makes it "
                "again from the game's own schemas; one with the mode `freeze` keeps its columns, so set `evolve` "
                "for the rebuild. Else the sentence says which field. Have the next version give the changed field a "
                "new number and the old one its kind back; what is in quarantine stays there, with its bytes. Where "
                "another message was meant, name it ([which message](kafka.md#which-message)), then replay. `demux "
                "schemas check FILE` finds such a change before it is registered.",
            )
        case Cause.SCHEMA_FROZEN:
            return Quarantined(
                Stage.SILVER,
                "the table is frozen, and the row's schema would add a column or make one wider",
                Replay.HELPS,
                "The sentence names the columns. Let the table have them (`games.schema_changes: evolve`, or `ask` and "
                "`demux schemas approve`), or keep them aside (`games.frozen: rescue`; not for a wider number), then "
                "replay. [Schema changes](schema-changes.md) says what each mode does.",
            )
        case Cause.MALFORMED_PAYLOAD:
            return Quarantined(
                Stage.SILVER,
                "the reference parser refuses the payload; its sentence says why",
                Replay.SELDOM,
                "Usually the producer wrote broken bytes, or named another schema than it wrote with; have it send the "
                "events again. Replay where the registry had another schema under this id.",
            )


_SETTING = (
    "If all records of a source are here, compare the settings {} with what the producer sends, correct them, and let "
    "`demux rebuild --bronze` read the source again (it [refuses](kafka.md#lost-offsets) if the source has less than "
    "bronze). If only some are, the producer is to blame: the row has their position, key, headers and bytes."
)


def unbalanced(kind: LedgerFault) -> str:
    """Return what to do about records of which `demux reconcile` says this."""
    match kind:
        case LedgerFault.NOT_TAKEN_IN:
            return (
                "Rows that a MERGE or UPDATE put into a source table never come in: append them. Otherwise `demux "
                "rebuild --bronze`, while the source has them."
            )
        case LedgerFault.TAKEN_TWICE:
            return "Somebody wrote to bronze by hand, or replaced its checkpoint: `demux rebuild --bronze`."
        case LedgerFault.LOST:
            return (
                "`demux rebuild --game NAME`. If the rows were deleted on purpose, delete them from bronze too, or "
                "a rebuild brings them back; rows of quarantine go by `demux quarantine drop`, which keeps the balance."
            )
        case LedgerFault.DOUBLED:
            return "Somebody wrote to the table by hand: `demux rebuild --game NAME`."
        case LedgerFault.IN_BOTH:
            return (
                "`demux quarantine replay --game NAME` once more; if they are still in both, `demux rebuild --game "
                "NAME`."
            )
        case LedgerFault.STRAY:
            return "`demux rebuild --game NAME` takes them away: silver then has what bronze has."


def meaning(code: ExitCode) -> str:
    """Return what an exit code means."""
    match code:
        case ExitCode.OK:
            return "all done (also: `--every` stopped by Ctrl-C or SIGTERM)"
        case ExitCode.UNEXPECTED:
            return (
                "failed for a reason that no other code names; also lost offsets or checkpoints, events that were not "
                "acknowledged"
            )
        case ExitCode.USAGE:
            return (
                "a mistake in settings, options, names or the installation; a login, permission or topic that is not "
                "there"
            )
        case ExitCode.GAMES_FAILED:
            return (
                "some games failed; the others are done, the table names cause and remedy (`schemas check`: the file "
                "breaks a game)"
            )
        case ExitCode.TRANSIENT:
            return "failed for now, such as a broker or registry that does not answer: try the same command again"
        case ExitCode.LOCKED:
            return "another command is at work on this root (`--wait` waits for it), or on this deployment"
        case ExitCode.UNBALANCED:
            return "`demux reconcile`: a record is lost, or in more than one place"
        case ExitCode.UNSEARCHED:
            return "`demux forget`: what it found is removed, but some records could not be searched yet; it says which"
        case ExitCode.INTERRUPTED:
            return "interrupted; what was under way is finished, the rest waits"
