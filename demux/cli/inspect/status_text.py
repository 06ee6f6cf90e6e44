"""The status of a root for a terminal: what needs action, then the games, the most urgent first. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from demux.cli.output.tables import counts_text, new_table, number_cell, text_cell
from demux.core.causes import Stage
from demux.core.text import counted, counted_rows, duration_text, first_few, printable
from demux.operations.status.model import LATE, WAITING, GameHealth, GameStatus, Status

_COLOURS = {GameHealth.FAILED: "red", GameHealth.WAITING: "yellow", GameHealth.BEHIND: "yellow"}
_URGENCY = {state: at for at, state in enumerate(GameHealth)}
_MOST_NAMES = 5


def status_text(status: Status, most_games: int | None = None) -> RenderableType:
    """Return the problems, and a line for each game.

    Args:
        most_games: games to show at most, the most urgent ones; None for all.
    """
    games = sorted(status.games, key=lambda game: (_URGENCY[game.state], not game.quarantined, game.game))
    shown = games if most_games is None else games[:most_games]
    lines: list[RenderableType] = [*_problem_lines(status)]
    lines += [Text(printable(note), "yellow") for note in status.notes]
    table = new_table(
        "game", "=state", ">rows in", ">silver", ">waiting", "quarantine", "versions", ">seconds", ">fresh p50, p95"
    )
    for game in shown:
        table.add_row(
            text_cell(game.game),
            Text(game.state.value, _COLOURS.get(game.state, "")),
            number_cell(game.rows_in),
            number_cell(_silver(game)),
            number_cell(game.lag_rows),
            counts_text(game.quarantined, "\n"),
            ", ".join(map(str, game.versions)),
            "" if game.seconds is None else f"{game.seconds:.1f}",
            Text(_fresh(game), "yellow" if game.is_late(status.at) else ""),
        )
    table.add_section()
    table.add_row(
        Text(counted(len(games), "game"), "bold"),
        "",
        number_cell(_sum(game.rows_in for game in games)),
        number_cell(_sum(_silver(game) for game in games)),
        number_cell(status.lag_rows),
        number_cell(sum(sum(game.quarantined.values()) for game in games)),
    )
    states = ", ".join(f"{count:,} {state.value}" for state, count in status.states.items() if count)
    lines += [Text(f"{counted(len(games), 'game')}: {states}"), table] if games else [table]
    if len(shown) < len(games):
        lines.append(Text(f"{counted(len(games) - len(shown), 'game')} more: `demux status --all`"))
    without_game = {cause: rows for (stage, cause), rows in status.quarantined.items() if stage is Stage.BRONZE}
    if without_game:
        lines.append(Text.assemble("records without a game, in quarantine: ", counts_text(without_game)))
    if dropped := {printable(game.game): game.dropped for game in games if game.dropped}:
        lines.append(Text.assemble("dropped from quarantine: ", counts_text(dropped)))
    if retired := {printable(game.game): game.retired for game in games if game.retired}:
        lines.append(Text.assemble("retired from bronze, being old: ", counts_text(retired)))
    return Group(*lines)


def _problem_lines(status: Status) -> Iterable[Text]:
    """Yield a line for each different problem: what all games share is said once."""
    rows = {game.game: game.lag_rows for game in status.games}
    for problem in status.problems:
        names = first_few([printable(game) for game in problem.games], _MOST_NAMES)
        if problem.condition == LATE:
            yield Text(f"late: {names}: {printable(problem.sentence)}", "yellow")
        elif problem.condition != WAITING:
            yield Text(f"failed: {names}: {problem.condition} {printable(problem.sentence)}", "red")
        else:
            waiting = _sum(rows[game] for game in problem.games)
            amount = "an unknown number of rows" if waiting is None else counted_rows(waiting)
            verb = "waits" if len(problem.games) == 1 else "wait"
            yield Text(f"{names} {verb} in bronze with {amount}: {printable(problem.sentence)}", "yellow")


def _fresh(game: GameStatus) -> str:
    p50_s, p95_s = game.freshness.p50_s, game.freshness.p95_s
    return "" if p50_s is None or p95_s is None else f"{duration_text(p50_s)}, {duration_text(p95_s)}"


def _silver(game: GameStatus) -> int | None:
    return 0 if game.table is None else game.table.rows


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; None where nothing is."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known or not listed else None
