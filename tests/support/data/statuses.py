"""Statuses to look at: games with names that would like to be more than names, and as many games as are asked for."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from random import Random

from demux.core.control.freshness import NO_FRESHNESS, Freshness
from demux.core.control.games_and_rounds import KnownGame, TaskOutcome, TaskRecord
from demux.core.names import names_of
from demux.core.registry.protocol import SubjectVersion
from demux.operations.status.facts import BronzeFile, Facts, QuarantinedRows, TableFacts
from demux.operations.status.model import Status
from demux.operations.status.summary import status_of

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
HOSTILE = (
    "</script><script>document.title='broken'</script>",
    '"><img src=x onerror="document.title=1">',
    "<!--<script>",
    "{{DATA}}{{SCRIPT}}",
    "${document.title=1}",
    "../../etc",
    "two\u2028lines",
    "right\u202eto left",
    "將棋 🎮",
    "__proto__",
    "constructor",
    "other",
    'quote" back\\slash',
    "x" * 80,
)
# most of them never get as far as bronze; the page must bear them all the same
WORSE = (
    "nul\0byte",
    "two\nlines\tand\x1b[31m a colour",
    "%2e%2e%2f%00",
    "zero\u200bwidth",
    "שחמט, ab",
    "z" + "\u0301" * 30,
)


def record(
    game: str,
    number: int = 0,
    rows: int = 100,
    error: tuple[str, str] | None = None,
    outcome: TaskOutcome = TaskOutcome.DONE,
    ids: tuple[int, ...] = (1, 2),
    seconds: float = 0.5,
) -> TaskRecord:
    """A task of round `number`, of which there is one each minute, the 60th now."""
    at = NOW - timedelta(minutes=60 - number)
    ended = TaskOutcome.FAILED if error else outcome
    condition, sentence = error or (None, None)
    fresh = Freshness(80, (rows,)) if rows else NO_FRESHNESS
    return TaskRecord(f"r{number}", game, ended, rows, rows, 0, ids, seconds, condition, sentence, at, fresh)


def known(game: str, cluster: str | None = "cluster_001") -> KnownGame:
    return KnownGame(game, cluster, "plan", NOW)


def busy(games: int, rounds: int = 30, seed: int = 1, first: tuple[str, ...] = HOSTILE) -> Status:
    """A root with this many games, some of which fail, wait, or are behind; the first ones have these names."""
    chance = Random(seed)
    names = [*first, *(f"game_{number:05}" for number in range(games))][:games]
    records = []
    for number in range(60 - rounds + 1, 61):
        for name in names:
            if chance.random() < 0.9:
                rows = int(chance.lognormvariate(6, 1.2))
                records.append(record(name, number, rows, seconds=rows / 20_000 + chance.random() / 50))
    failures = (
        ("REGISTRY_UNAVAILABLE", "The registry at https://registry.example.com does not answer. Try again later."),
        ("CHECKPOINT_LOST", "The checkpoint of a game is gone. Rebuild its table: `demux rebuild --game <name>`."),
    )
    failed = [name for at, name in enumerate(names) if at % 23 == 1]
    records += [record(name, 60, 0, failures[at % 2]) for at, name in enumerate(failed)]
    done = {name: sum(one.rows_in for one in records if one.game == name) for name in names} if games < 500 else {}
    facts = Facts(
        games={
            name: known(name, None if at % 37 == 2 else f"cluster_{at % 4 + 1:03}") for at, name in enumerate(names)
        },
        records=records,
        bronze={
            name: (
                BronzeFile(NOW - timedelta(minutes=50), done.get(name, 5000)),
                BronzeFile(NOW - timedelta(minutes=4), 250 * (at % 11 == 3) + 30 * (at % 23 == 1)),
            )
            for at, name in enumerate(names)
        },
        silver={
            name: TableFacts(at % 30 + 1, 40_000 * (at % 300 + 1), done.get(name, 5000))
            for at, name in enumerate(names)
        },
        quarantine=[
            *(QuarantinedRows("MALFORMED_PAYLOAD", name, 3) for at, name in enumerate(names) if at % 5 == 0),
            *(QuarantinedRows("UNKNOWN_SCHEMA", name, 40) for at, name in enumerate(names) if at % 19 == 0),
            QuarantinedRows("MALFORMED_WRAPPER", None, 1_234),
        ],
        uses={("default", at): [SubjectVersion("any", at)] for at in (1, 2)},
    )
    reasons = dict.fromkeys(names, "games.limit is 1000 and as many games are running")
    return status_of("/data/demux", facts, NOW, reasons, fresh_within_s=lambda game: 86_400.0)


def key(game: str) -> str:
    return names_of(game).key
