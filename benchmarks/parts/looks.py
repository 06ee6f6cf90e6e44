"""How long people wait for commands that only look, each a process of its own, against the bars of issue 21.

The figures are of the fastest of three runs. No Spark.

    python -m benchmarks.parts.looks
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from benchmarks.parts.status_page import ProcessCost, append_rows, cost_of, fill, make_log
from benchmarks.support.page import write_section
from demux.cli.app import COMMANDS
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.tables import BRONZE, SILVER_ORIGIN

_TITLE = "Commands that only look"
_COMMAND = "python -m benchmarks.parts.looks"
_RUNS = 3
_QUARANTINED = 20
_SHOWN = "game_00000"
_FILES = 10
_LEDGER_GAMES = 20


@dataclass(frozen=True, slots=True)
class Wait:
    """The cost of a command, and the CPU seconds that it may take."""

    what: str
    cost: ProcessCost
    most_s: float


def waits(folder: str, games: int, many: int, rows: int) -> Iterator[Wait]:
    """Yield the cost of each command.

    Args:
        folder: where roots are made.
        games: of the usual root.
        many: games of the large one.
        rows: of bronze, in the root that is counted.
    """
    helps = {name: _fastest([*name.split(), "--help"]) for name in COMMANDS}
    slowest = max(helps, key=lambda name: helps[name].cpu_s)
    yield Wait(f"`{slowest} --help`, the slowest of {len(helps)}", helps[slowest], 0.3)
    root = f"{folder}/usual"
    fill(root, games, _QUARANTINED * games)
    _fill_shown(Layout(root))
    of = ["--root", root]
    yield Wait(f"`status`, {games:,} games", _fastest(["status", *of]), 1.5)
    yield Wait(f"`plan`, {games:,} games", _fastest(["plan", *of]), 1.5)
    yield Wait(f"`show`, {games:,} games", _fastest(["show", _SHOWN, *of]), 1.0)
    root = f"{folder}/large"
    fill(root, many, _QUARANTINED * many)
    yield Wait(f"`status`, {many:,} games", _fastest(["status", "--root", root]), 6.0)
    root = f"{folder}/ledger"
    _fill_ledger(Layout(root), rows // _LEDGER_GAMES)
    what = f"`reconcile`, {_LEDGER_GAMES} games, {rows:,} rows"
    yield Wait(what, _fastest(["reconcile", "--root", root]), 10.0)


def _fastest(words: Sequence[str]) -> ProcessCost:
    return min((cost_of(words) for _ in range(_RUNS)), key=lambda cost: cost.cpu_s)


def _fill_shown(layout: Layout) -> None:
    """Write rows into the table of one game, which had a log alone."""
    path, now = layout.silver(names_of(_SHOWN).key), datetime.now(timezone.utc)
    shutil.rmtree(path)
    for number in range(_FILES):
        ids = [f"t/0/{number * 100 + at}" for at in range(100)]
        append_rows(path, SILVER_ORIGIN, {"_record_id": ids, "_decoded_at": [now] * len(ids)})


def _fill_ledger(layout: Layout, rows: int) -> None:
    """Write so many rows of each game into bronze, and the same into its table."""
    now = datetime.now(timezone.utc)
    make_log(layout.bronze, BRONZE, ["game_name"])
    for number in range(_LEDGER_GAMES):
        game = f"game_{number:05}"
        ids = [f"t/{number}/{at}" for at in range(rows)]
        append_rows(layout.bronze, BRONZE, {"game_name": [game] * rows, "record_id": ids})
        append_rows(layout.silver(names_of(game).key), SILVER_ORIGIN, {"_record_id": ids, "_decoded_at": [now] * rows})


def main() -> None:
    """Measure, and write the section of RESULTS.md."""
    arguments = argparse.ArgumentParser(prog=_COMMAND, description=__doc__)
    arguments.add_argument("--games", type=int, default=1_000)
    arguments.add_argument("--many", type=int, default=10_000)
    arguments.add_argument("--rows", type=int, default=2_000_000)
    given = arguments.parse_args()
    lines = ["| command | bar, s | CPU, s | clock, s | MiB | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    with tempfile.TemporaryDirectory(prefix="demux-bench-") as folder:
        for wait in waits(folder, given.games, given.many, given.rows):
            cost = wait.cost
            verdict = "reached" if cost.cpu_s <= wait.most_s else "missed"
            lines.append(
                f"| {wait.what} | {wait.most_s:g} | {cost.cpu_s:.2f} | {cost.seconds:.2f} | {cost.memory_mib:,.0f} "
                f"| {verdict} |"
            )
            print(lines[-1], flush=True)
    write_section(_TITLE, _COMMAND, f"the fastest of {_RUNS} runs, each a process; bars are of CPU", lines)


if __name__ == "__main__":
    main()
