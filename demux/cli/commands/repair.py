"""Commands that change tables again: rebuild, backfill, forget, maintain."""

from __future__ import annotations

import typer

from demux.cli.completion import complete_games
from demux.cli.options import BY_SPARK, GAMES, JSON, QUIET, TAKE_TURNS, YES, runs

_DAYS = "2026-01-31 (UTC), a time in it, or an age (7d)"


@runs("demux.cli.repair.rebuild:rebuild")
def rebuild(
    game: str | None = typer.Option(
        None, "--game", help="Make this game's silver table again from bronze.", autocompletion=complete_games
    ),
    bronze: bool = typer.Option(False, "--bronze", help="Make bronze again from its source, and empty all silver."),
    accept_gaps: bool = typer.Option(
        False, "--accept-gaps", help="With --bronze: also where the source does not have all of bronze any more."
    ),
    accept_return: bool = typer.Option(
        False, "--accept-return", help="With --bronze: also where records would come back that `demux forget` removed."
    ),
    accept_loss: bool = typer.Option(
        False, "--accept-loss", help="With --game: also where bronze lacks rows that its table has; they are lost."
    ),
    quiet: bool = QUIET,
    wait: bool = TAKE_TURNS,
) -> None:
    """Make a table again from where it came from: after a lost checkpoint, or to decode everything again.

    A game's table is made beside the one that is there, and takes its place in one change.

    Example: `demux rebuild --game chess`
    """


@runs("demux.cli.repair.backfill:backfill")
def backfill(
    game: list[str] = typer.Option(
        [], "--game", "--games", help="Only this game (exact name). May be repeated.", autocompletion=complete_games
    ),
    since: str | None = typer.Option(None, "--from", help=f"The first day: {_DAYS}.", metavar="DAY"),
    until: str | None = typer.Option(None, "--to", help="The last day, which belongs to the range.", metavar="DAY"),
    rescued: bool = typer.Option(False, "--rescued", help="Fill columns from what was kept in `_rescued` instead."),
    status: bool = typer.Option(False, "--status", help="Only list the backfills of this root, the newest first."),
    dry_run_only: bool = typer.Option(False, "--dry-run", help="Only say how much there is to do."),
    json: bool = JSON,
    quiet: bool = QUIET,
    wait: bool = TAKE_TURNS,
) -> None:
    """Decode days again from bronze, as they are by the schemas and settings of now; readers see one change a step.

    If it is killed, run it again: it continues with what is not done. A `demux run --every` may run meanwhile.

    Example: `demux backfill --games chess --from 2026-01-01 --to 2026-01-31`
    """


@runs("demux.cli.repair.forget:forget")
def forget(
    where: str = typer.Option(
        ..., "--where", help="Whom: a condition on columns of the games' tables, such as \"user_name = 'ann'\"."
    ),
    game: list[str] = GAMES,
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would go; decodes nothing before."),
    json: bool = JSON,
    unreadable_too: bool = typer.Option(
        False,
        "--unreadable-too",
        help="Also remove quarantined records that do not decode and whose bytes have a text of --where.",
    ),
    force: bool = typer.Option(False, "--force", help="Also where all rows of a table are meant."),
    by_spark: bool = BY_SPARK,
    wait: bool = TAKE_TURNS,
    yes: bool = YES,
) -> None:
    """Remove a person's records from silver, bronze and quarantine, bytes included; they are listed first.

    Streams may run. If it is killed, run it again: it first finishes what was begun. Exit code 7: not all records could
    be searched. --where is written down nowhere, but your shell may keep it. Starts Spark only to decode what is not
    decoded yet, and where a table needs it; with --dry-run, only with --spark.

    Example: `demux forget --where "player.name = 'ann' AND country = 'AT'" --dry-run`
    """


@runs("demux.cli.repair.maintain:maintain")
def maintain(
    games: list[str] = typer.Option(
        [],
        "--game",
        help="Only the table of this game (exact name). May be repeated.",
        metavar="NAME",
        autocompletion=complete_games,
    ),
    vacuum: bool = typer.Option(True, "--vacuum/--no-vacuum", help="Remove files that no table needs any more."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be done; starts no Spark."),
    json: bool = JSON,
    quiet: bool = QUIET,
    by_spark: bool = BY_SPARK,
    force: bool = typer.Option(False, "--force", help="Also where files are kept for less than an hour."),
    wait: bool = TAKE_TURNS,
) -> None:
    """Join small files, remove old ones, retire old rows of bronze; streams may run meanwhile.

    Example: `demux maintain --dry-run`
    """
