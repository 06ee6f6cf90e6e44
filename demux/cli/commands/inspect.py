"""Commands that only look at a root: status, serve, show, reconcile."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.completion import complete_games
from demux.cli.options import BY_SPARK, GAMES, JSON, runs


@runs("demux.cli.inspect.status:status")
def status(
    html: Path | None = typer.Option(None, "--html", help="Write a page for a browser instead."),
    json: bool = JSON,
    games: list[str] = GAMES,
    everything: bool = typer.Option(False, "--all", help="All games, not only a screen of the most urgent ones."),
    watch: float | None = typer.Option(
        None, "--watch", min=0.1, help="Read and print again every so many seconds, until Ctrl-C.", metavar="SECONDS"
    ),
) -> None:
    """Show what failed and what to do, which games wait and why, and where every record is, game by game.

    Reads the logs of the tables, and starts no Spark.

    Example: `demux status --game chess --watch 5`
    """


@runs("demux.cli.inspect.serve:serve")
def serve(
    port: int = typer.Option(8642, min=0, max=65535, help="Port; 0 takes any free one."),
    host: str = typer.Option("127.0.0.1", help="Address to listen at. Others than loopback let others look in."),
    allow_host: list[str] = typer.Option(
        [], help="Another name of this server, such as that of a proxy before it. May be repeated.", metavar="NAME"
    ),
    metrics_games: int = typer.Option(
        500, min=0, help="Games with series of their own in /metrics, those with most rows; the rest is summed."
    ),
) -> None:
    """Serve the status as a page that keeps itself up to date, with /metrics and /healthz; until Ctrl-C or SIGTERM.

    Only reads, starts no Spark, and takes no lock: it may run beside `demux run --every 30s`.

    Example: `demux serve --port 8642`
    """


@runs("demux.cli.inspect.status:show")
def show(
    game: str = typer.Argument(..., help="The exact game name.", autocompletion=complete_games),
    rows: int = typer.Option(10, min=1, max=1000, help="How many rows."),
    json: bool = JSON,
    by_spark: bool = BY_SPARK,
) -> None:
    """Show the newest rows of a game's silver table.

    Starts Spark only with --spark, or where only Spark opens the tables.

    Example: `demux show chess --rows 3`
    """


@runs("demux.cli.inspect.reconcile:reconcile")
def reconcile(
    games: list[str] = GAMES,
    rounds: bool = typer.Option(False, "--rounds", help="An account of each round (batch of bronze) of each game."),
    everything: bool = typer.Option(False, "--all", help="Also list the games that balance."),
    json: bool = JSON,
    strict: bool = typer.Option(
        False, "--strict", help="Holes in Kafka's offsets count: for topics without transactions and compaction."
    ),
    by_spark: bool = BY_SPARK,
) -> None:
    """Prove that every record is in exactly one place, from the tables alone; exit code 6 if one is not.

    Records in the source = bronze + retired + quarantine + dropped + forgotten; bronze + retired = silver +
    quarantine + dropped + waiting. Retired is what `demux maintain` took out of bronze, being old; dropped what
    `demux quarantine drop` took away; forgotten what `demux forget` did. Changes nothing, and may run at any time.
    Starts Spark only with --spark, or where only Spark opens the tables.

    Example: `demux reconcile --game chess --rounds`
    """
