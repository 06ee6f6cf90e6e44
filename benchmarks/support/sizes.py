"""How large the bench of the fleet is; the defaults are those of the figures in RESULTS.md."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, fields


def _size(default: int, what: str) -> int:
    size: int = field(default=default, metadata={"help": what})
    return size


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts of games, rows and rounds; each is an option of the command line."""

    games: int = _size(20, "games of the naive design, and of the fleet beside it")
    many: int = _size(200, "games of a larger fleet; tables that are maintained")
    fewer: int = _size(100, "games that the largest fleet is compared with, all active")
    most: int = _size(1_000, "games of the largest fleet")
    active: int = _size(10, "games with new rows where most have none")
    rows: int = _size(2_000, "new rows of an active game in a round")
    few_rows: int = _size(200, "the same where all games of the largest fleet are active")
    total: int = _size(2_000_000, "rows of a round that is measured in rows per second")
    days: int = _size(30, "days that the rows of a backfill are of")
    versions: int = _size(3, "schema versions of the events of cost and speed; the other parts have one")
    warm: int = _size(2, "rounds before those that count")
    repeats: int = _size(3, "rounds that count; figures are medians")
    rounds: int = _size(20, "rounds over which memory is watched")
    file_rounds: int = _size(50, "rounds over which files are counted")
    curve_games: int = _size(1_000, "games at the right end of the plot against games")
    naive_games: int = _size(20, "games up to which the naive design is in that plot")
    curve_rows: int = _size(100_000, "rows of a game at the right end of the plot against rows")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each size."""
    for size in fields(Sizes):
        parser.add_argument(
            f"--{size.name.replace('_', '-')}",
            type=int,
            default=size.default,
            metavar="N",
            help=f"{size.metadata['help']} (%(default)s)",
        )


def sizes_of(options: argparse.Namespace) -> Sizes:
    """Return the sizes that the options say."""
    return Sizes(**{size.name: getattr(options, size.name) for size in fields(Sizes)})
