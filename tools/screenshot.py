"""Makes the pictures of the status page in docs/images, from games made up here: `python -m tools.screenshot`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

from demux.core.control.freshness import Freshness, bucket_of
from demux.core.control.games_and_rounds import KnownGame, TaskOutcome, TaskRecord
from demux.core.registry.protocol import SubjectVersion
from demux.operations.status.facts import BronzeFile, Facts, QuarantinedRows, TableFacts
from demux.operations.status.html_page import page
from demux.operations.status.http_server import REFRESH_S
from demux.operations.status.json_view import status_json
from demux.operations.status.model import Status
from demux.operations.status.summary import status_of
from producer.schemas import games
from tools.chromium import Tab, browser

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# name, width and height in pixels, dark, what is at the top
PICTURES = (
    ("status", 1280, 860, False, "header"),
    ("status-dark", 1280, 860, True, "header"),
    ("status-phone", 390, 844, False, "#games"),
)
_NOW = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
_ROUNDS = 60
_LOST = "mahjong"
_LOST_FROM = 54
_FAILURE = (
    "CHECKPOINT_LOST",
    f"The checkpoint of game {_LOST} is gone; its table has rows. Rebuild the table: `demux rebuild --game {_LOST}`.",
)
_CAME_SINCE = {"chess": 4_310, "poker": 780}


def status() -> Status:
    """Return 24 games after 60 rounds, one a minute: one failed, two are behind, two wait to be admitted."""
    names = [game.name for game in games(24)]
    running, waiting = names[:22], names[22:]
    sent = {name: _sent(at, Random(at)) for at, name in enumerate(running)}
    read = {name: rows[:_LOST_FROM] if name == _LOST else rows for name, rows in sent.items()}
    bad = {name: 7 * at % 23 for at, name in enumerate(running)}
    facts = Facts(
        games={name: KnownGame(name, f"cluster_{at // 8 + 1:03}", "plan", _NOW) for at, name in enumerate(running)}
        | {name: KnownGame(name, None, "plan", _NOW) for name in waiting},
        records=[_task(name, number, read[name]) for number in range(_ROUNDS) for name in running],
        bronze={name: tuple(_came(name, sent.get(name, [1_200]))) for name in names},
        silver={
            name: TableFacts(at % 9 + 2, 90 * sum(read[name]), sum(read[name]) - bad[name])
            for at, name in enumerate(running)
        },
        quarantine=[
            *(
                QuarantinedRows(("UNKNOWN_SCHEMA", "MALFORMED_PAYLOAD")[rows % 2], name, rows)
                for name, rows in bad.items()
            ),
            QuarantinedRows("MALFORMED_WRAPPER", None, 47),
            QuarantinedRows("INVALID_GAME_NAME", None, 41),
        ],
        uses={("default", number): [SubjectVersion("any", number)] for number in (1, 2, 3)},
    )
    return status_of(
        "/data/demux", facts, _NOW, dict.fromkeys(waiting, "games.limit is 22 and as many games are running")
    )


def _sent(at: int, chance: Random) -> list[int]:
    """Return the rows of each round; evening comes, and more people play."""
    return [int((1 + number / _ROUNDS) * 9_000 / (at + 4) * (0.8 + 0.4 * chance.random())) for number in range(_ROUNDS)]


def _ended(number: int) -> datetime:
    return _NOW - timedelta(minutes=_ROUNDS - 1 - number, seconds=12)


def _came(name: str, sent: list[int]) -> Iterator[BronzeFile]:
    for number, rows in enumerate(sent, _ROUNDS - len(sent)):
        yield BronzeFile(_ended(number) - timedelta(seconds=20), rows)
    yield BronzeFile(_NOW - timedelta(seconds=9), _CAME_SINCE.get(name, 0))


def _task(name: str, number: int, read: list[int]) -> TaskRecord:
    fails = number >= len(read)
    rows = 0 if fails else read[number]
    condition, sentence = _FAILURE if fails else (None, None)
    return TaskRecord(
        round_id=f"r{number}",
        game=name,
        outcome=TaskOutcome.FAILED if fails else TaskOutcome.DONE,
        rows_in=rows,
        rows_silver=rows,
        rows_quarantined=0,
        schema_ids=(1, 2, 3)[: len(name) % 3 + 1],
        seconds=0.012 + rows / 180_000,
        condition=condition,
        sentence=sentence,
        finished_at=_ended(number),
        freshness=Freshness.of({bucket_of(1.2 + len(name) % 5 / 4 + rows / 4_000): rows}),
    )


def take(tab: Tab, folder: Path, file: Path) -> None:
    """Write the pictures into the folder; the page that they are of is written to the file."""
    file.write_text(page(status_json(status()), REFRESH_S), encoding="utf-8")
    for name, width, height, dark, top in PICTURES:
        tab.look(width, height, dark)
        tab.open("about:blank")
        tab.open(file.as_uri())
        tab.js(f"document.querySelector('{top}').scrollIntoView()")
        tab.screenshot(folder / f"{name}.png")


def main() -> None:
    """Make the screenshots again."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="demux-") as folder, browser(Path(folder, "profile")) as tab:
        take(tab, IMAGES, Path(folder, "status.html"))


if __name__ == "__main__":
    main()
