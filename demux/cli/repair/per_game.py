"""One game after the other, each with its own end: one game's failure stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import typer
from rich.text import Text

from demux.cli.command import console, print_failure
from demux.core.error_mapping import named
from demux.core.errors import DemuxError, ExitCode
from demux.core.text import printable
from demux.pipeline.context import CommandContext


def each_game(place: CommandContext, games: Iterable[str], doing: str, act: Callable[[str], str]) -> None:
    """Act on each game and print how it ended; when all are through, raise why the first one failed, if one did.

    Between two games other commands may have the root. Once the place's `stop` is set, no other game begins.

    Args:
        doing: what is done, such as `decoding`.
        act: does it to one game and returns how it ended, in words.
    """
    failed: list[DemuxError] = []
    for number, game in enumerate(games):
        if number:
            place.give_way()
        if place.stop.is_set():
            raise typer.Exit(ExitCode.INTERRUPTED)
        try:
            with console.status(Text(f"{doing} {printable(game)} …")):
                ended = act(game)
        except Exception as error:  # one game's failure must not stop its neighbours
            failed.append(named(error))
            print_failure(f"{game}: {failed[-1]}")
            continue
        console.print(f"{printable(game)}: {ended}")
    if failed:
        raise failed[0]
