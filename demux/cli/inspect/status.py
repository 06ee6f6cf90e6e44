"""`demux status` and `demux show`: look, change nothing, start no Spark."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demux.api.root import Root
from demux.cli.command import console, session_to_look
from demux.cli.inspect.serve import write_page
from demux.cli.output.documents.looks import ShowJson
from demux.cli.output.print_json import print_json
from demux.cli.output.tables import counts_text, freshness_text, new_table, number_cell, text_cell
from demux.core.causes import Stage
from demux.core.root.layout import layout_of, require_root
from demux.core.settings.settings import Settings
from demux.core.text import count_text, first_few, printable
from demux.operations.quarantine.filter import require_game
from demux.operations.status.json_view import status_content
from demux.operations.status.model import LATE, WAITING, GameHealth, GameStatus, Status

# lines of a screen that are not games
_OTHER_LINES = 12


def status(
    settings: Settings, html: Path | None, json: bool, games: list[str], everything: bool, watch: float | None
) -> None:
    """Show what failed and what to do, which games wait and why, and where every record is, game by game."""
    require_root(layout_of(settings))
    read = Root(settings).status_reader()
    if html is not None:
        write_page(read(), html)
        return

    def look() -> Status:
        return _only(read(), games)

    if json:
        print_json(status_content(look()), indent=None)
    elif watch is None:
        console.print(_text(look(), everything or bool(games)))
    else:
        with Live(_text(look(), everything or bool(games)), console=console, auto_refresh=False, screen=False) as live:
            while True:
                time.sleep(watch)
                live.update(_text(look(), everything or bool(games)), refresh=True)


def show(settings: Settings, game: str, rows: int, json: bool, by_spark: bool) -> None:
    """Show the newest rows of a game's silver table."""
    with session_to_look(settings, "show", by_spark=by_spark) as spark:
        table = Root(settings).silver(game)
        newest = table.newest(rows, spark)
    if json:
        values = [{name: _json_value(row[name]) for name in newest.columns} for row in newest.rows]
        document: ShowJson = {
            "game": game,
            "path": table.path,
            "count": newest.count,
            "columns": list(newest.columns),
            "rows": values,
        }
        print_json(document)
        return
    console.print(_rows_table(newest.columns, newest.rows))
    console.print(f"{newest.count:,} rows in {table.path}", soft_wrap=True)


def print_status(settings: Settings) -> None:
    """Print where every record is, as the logs of the tables say."""
    console.print(_text(Root(settings).status(), everything=False))


def _text(status: Status, everything: bool) -> RenderableType:
    # a file or a pipe has no end of the screen
    most = None if everything or not console.is_terminal else max(1, console.height - _OTHER_LINES)
    return status_text(status, most)


def _only(status: Status, games: Sequence[str]) -> Status:
    """Return the status of these games alone, of all for none; raises `GameUnknown` for a name that is not there."""
    if not games:
        return status
    for name in games:
        require_game(name, (game.game for game in status.games))
    problems = tuple(
        replace(problem, games=tuple(name for name in problem.games if name in games))
        for problem in status.problems
        if not set(games).isdisjoint(problem.games)
    )
    return replace(status, games=tuple(game for game in status.games if game.game in games), problems=problems)


def _rows_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return one line for each column and one column for each row: a game may have many columns."""
    table = Table(show_header=False)
    table.add_column("column", style="bold")
    for _ in rows:
        table.add_column(overflow="fold")
    for name in columns:
        table.add_row(Text(printable(name)), *(Text(printable(_value(row[name]))) for row in rows))
    return table


def _value(value: object) -> str:
    """Return a value as people read it; bytes in hex, a struct as `{name: value}`."""
    match value:
        case None:
            return ""
        case dict():
            return f"{{{', '.join(f'{_value(key)}: {_value(part)}' for key, part in value.items())}}}"
        case list():
            return f"[{', '.join(_value(part) for part in value)}]"
        case bytes() | bytearray():
            return value.hex(" ")
        case _:
            return str(value)


def _json_value(value: object) -> object:
    """Return a value as JSON has it."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(key): _json_value(part) for key, part in value.items()}
        case list():
            return [_json_value(part) for part in value]
        case bytes() | bytearray():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case _:
            return str(value)


_COLOURS = {GameHealth.FAILED: "red", GameHealth.WAITING: "yellow", GameHealth.BEHIND: "yellow"}
_URGENCY = {state: at for at, state in enumerate(GameHealth)}
_MOST_NAMES = 5


def status_text(status: Status, most_games: int | None = None) -> RenderableType:
    """Return the problems, and a line for each game."""
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
            Text(freshness_text(game.freshness), "yellow" if game.is_late(status.at) else ""),
        )
    table.add_section()
    table.add_row(
        Text(count_text(len(games), "game"), "bold"),
        "",
        number_cell(_sum(game.rows_in for game in games)),
        number_cell(_sum(_silver(game) for game in games)),
        number_cell(status.lag_rows),
        number_cell(sum(sum(game.quarantined.values()) for game in games)),
    )
    states = ", ".join(f"{count:,} {state.value}" for state, count in status.states.items() if count)
    lines += [Text(f"{count_text(len(games), 'game')}: {states}"), table] if games else [table]
    if len(shown) < len(games):
        lines.append(Text(f"{count_text(len(games) - len(shown), 'game')} more: `demux status --all`"))
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
            amount = "an unknown number of rows" if waiting is None else count_text(waiting, "row")
            verb = "waits" if len(problem.games) == 1 else "wait"
            yield Text(f"{names} {verb} in bronze with {amount}: {printable(problem.sentence)}", "yellow")


def _silver(game: GameStatus) -> int | None:
    return 0 if game.table is None else game.table.rows


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; None where nothing is."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if known or not listed else None
