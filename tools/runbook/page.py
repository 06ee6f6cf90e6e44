"""The text of docs/runbook.md, made from the errors, the causes and the exit codes that there are. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence

from demux.core.causes import Cause, Stage
from demux.core.errors import DemuxError, ErrorKind, ExitCode
from demux.operations.reconcile.balance import MEANING
from demux.operations.reconcile.balance import LedgerFault as Wrong
from tools.runbook.advice import ADVICE, Stops
from tools.runbook.records import Replay, meaning, quarantined, unbalanced
from tools.runbook.sentences import OPEN, Said, said_in

# tools and tests have errors of their own, which nobody on call meets
_OURS = (error for error in DemuxError.__subclasses__() if error.__module__ == DemuxError.__module__)
CONDITIONS = tuple(sorted(_OURS, key=lambda error: error.condition))

_HEAD = """\
# Runbook
For whoever is on call: every error condition, cause of quarantine and exit code, what it means and what to do.
`make golden` makes this page from the code (`tools/runbook/`); a test fails when it is out of date.

Begin with `demux status` (which games failed or wait, and why), `demux quarantine list` (what was quarantined, with a
sample) and `demux reconcile` (whether every record is in exactly one place). Then look for the word in capitals on this
page. No condition loses a record by itself: what is not in silver or quarantine yet is in bronze, and what is not in
bronze yet is in the source, as long as that keeps it.

| where it says so | what |
| --- | --- |
| standard error of the command | the condition, a sentence of cause, one of remedy; the [exit code](#exit-codes) |
| the end of what `demux run` prints; `demux status` | the same for each game whose last task failed |
| `control/rounds` | each task of each round: `outcome`, `condition`, `sentence` |
| `logs/demux.log`, in a workspace the task's output | the same, with its trace; Spark's side is in `spark.log` |
| `quarantine` | each record that was quarantined: its [cause](#causes-of-quarantine), a sentence, position, bytes |

## What continues without you
| stopped is | then |
| --- | --- |
| the command | It ends. What was committed stays, and the same command again does only the rest. |
| bronze | Nothing is taken in, and no games run behind it. `demux deserialize --game NAME` decodes what is in bronze. |
| a game | All others continue, `--every` too. Its rows wait in bronze, and each round tries it again. |
| an installer | `plan`, `apply`, `destroy` or `grants` of a deployment ends; jobs in the workspace run as they are. |

* **Passes by itself** means that the same thing may succeed later without a change: a game is tried again
  `run.retries` times in the round, waits growing from `run.retry_wait_s`, and `--every` continues with the next round.
* What does **not** pass by itself ends a command, with `--every` too, unless it stops a single game.
* `demux rebuild --game` puts the new table in place of the old one in one commit: its readers see either.
  `demux rebuild --bronze` empties bronze first. Killed midway, give either again.
* In a deployment a failed task is tried again `databricks.retries` times, whatever the condition
  ([retries](databricks.md#retries))."""


def page(sources: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        sources: the text of each file of the product, by path, of which the sentences are read.
    """
    said = said_in(sources, {error.__name__ for error in CONDITIONS})
    parts = [
        _HEAD,
        "## Conditions\n" + _table(("condition", "stops", "passes by itself", "meaning"), map(_line, CONDITIONS)),
        *map(_condition, CONDITIONS),
        "## Causes of quarantine\n" + _CAUSES,
        _table(("cause", "stage", "a replay", "meaning"), map(_cause_line, Cause)),
        *map(_cause, Cause),
        "## What does not balance\n" + _LEDGER,
        _table(("it says", "meaning", "to do"), ((kind.value, MEANING[kind], unbalanced(kind)) for kind in Wrong)),
        "## Exit codes\n" + _CODES,
        _table(("code", "meaning", "conditions"), map(_code, ExitCode)),
        "## Every sentence\n" + _SENTENCES,
        *(_sentences(error.condition, said.get(error.__name__, ())) for error in CONDITIONS),
    ]
    return "\n\n".join(part for part in parts if part)


_CAUSES = """\
A bad record stops nothing: its neighbours arrive. `demux quarantine list` groups them by cause, game and schema, with a
sample of each, and `demux quarantine show` has whole records, decoded as far as they go; neither needs Spark. A replay
decodes records of stage silver again, exactly once however often it is called; those that still fail stay, with today's
cause. Stage bronze could not tell a game or payload, so there is nothing to decode again. What is of no use
goes by `demux quarantine drop --older-than 90d`, for good: look with `--dry-run` first."""

_LEDGER = """\
`demux reconcile` (exit code 6) says of each record that is not in exactly one place what is wrong, with game, batch and
position. Run it once more when no replay or rebuild is under way. The table's history (`DESCRIBE HISTORY`) says who
wrote and deleted, also after a rebuild."""

_CODES = """\
Where only games failed, the code is 3, or 4 if each of them may pass by itself; otherwise it is the condition's."""

_SENTENCES = f"""\
What the code can say, word for word, and what it then advises; `{OPEN}` stands for what it only knows then. Look here
for words out of a log."""


def _line(error: type[DemuxError]) -> Sequence[str]:
    return _link(error.condition), _stops(error), _passes(error), _paragraphs(error)[0]


def _condition(error: type[DemuxError]) -> str:
    advice = ADVICE[error]
    return "\n".join(
        [
            f"### {error.condition}",
            "\n\n".join(_paragraphs(error)),
            "",
            f"* **Stops** {_stops(error)}; passes by itself: {_passes(error)}; exit code {error.exit_code.value}.",
            f"* **By itself:** {advice.by_itself}",
            f"* **To do:** {advice.remedy}",
        ]
    )


def _cause_line(cause: Cause) -> Sequence[str]:
    known = quarantined(cause)
    return _link(cause.value), known.stage.value, known.replay.value, known.meaning


def _cause(cause: Cause) -> str:
    known = quarantined(cause)
    lines = [f"### {cause.value}", f"{known.meaning[0].upper()}{known.meaning[1:]}.", ""]
    lines.append(f"* **Records:** of stage {known.stage.value}; `bytes` has {_bytes(known.stage)}.")
    lines.append(f"* **To do:** {known.remedy}")
    command = (
        f"`demux quarantine replay --cause {cause.value}`, with `--game NAME` for one game, `--since 2d` for new ones"
    )
    lines.append(f"* **A replay** {known.replay.value}{'' if known.replay is Replay.NEVER else f': {command}'}.")
    return "\n".join(lines)


def _bytes(stage: Stage) -> str:
    match stage:
        case Stage.BRONZE:
            return "the whole record or piece of a file, beside its key and headers"
        case Stage.SILVER:
            return "the payload; the rest of the record is in bronze"


def _code(code: ExitCode) -> Sequence[str]:
    conditions = (_link(error.condition) for error in CONDITIONS if error.exit_code is code)
    return str(code.value), meaning(code), ", ".join(conditions)


def _sentences(condition: str, said: Iterable[Said]) -> str:
    rows = [(_either(each.causes), _either(each.remedies)) for each in said]
    # where all of it is made at run time, there is nothing to look for
    rows = [row for row in rows if any(cell.strip(f"{OPEN}:. ") for cell in row)]
    return f"**{_link(condition)}**\n\n{_table(('it says', 'it advises'), rows)}" if rows else ""


def _either(texts: Sequence[str]) -> str:
    return "<br>or: ".join(texts)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(_rows(heads, rows))


def _rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _paragraphs(error: type[DemuxError]) -> list[str]:
    """Return the paragraphs of the class's docstring, the first of which is one sentence."""
    return [" ".join(text.split()) for text in inspect.cleandoc(error.__doc__ or "").split("\n\n")]


def _stops(error: type[DemuxError]) -> str:
    *others, last = (each.value for each in Stops if each in ADVICE[error].stops)
    return f"{', '.join(others)} or {last}" if others else last


def _passes(error: type[DemuxError]) -> str:
    return "yes" if error.kind is ErrorKind.TRANSIENT else "no"


def _link(word: str) -> str:
    return f"[`{word}`](#{word.lower()})"
