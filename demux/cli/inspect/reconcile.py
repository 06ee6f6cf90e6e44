"""`demux reconcile`: prove from the tables that every record is in exactly one place, or say which is not."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.api.root import Root
from demux.cli.command import BY_SPARK, ROOT, SET, SETTINGS, console, session_to_look, settings_of
from demux.cli.inspect.reconcile_text import ledger_json, ledger_text
from demux.core.errors import ExitCode
from demux.core.settings.source import SourceKind
from demux.operations.reconcile.balance import Grain


def reconcile(
    games: list[str] = typer.Option([], "--game", help="Only this game (exact name). May be repeated."),
    rounds: bool = typer.Option(False, "--rounds", help="An account of each round (batch of bronze) of each game."),
    everything: bool = typer.Option(False, "--all", help="Also list the games that balance."),
    json: bool = typer.Option(False, "--json", help="Print the ledger as JSON."),
    strict: bool = typer.Option(
        False, "--strict", help="Holes in Kafka's offsets count: for topics without transactions and compaction."
    ),
    by_spark: bool = BY_SPARK,
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Prove that every record is in exactly one place, from the tables alone; exit code 6 if one is not.

    Records in the source = bronze + retired + quarantine + dropped + forgotten; bronze + retired = silver +
    quarantine + dropped + waiting. Retired is what `demux maintain` took out of bronze, being old; dropped what
    `demux quarantine drop` took away; forgotten what `demux forget` did. Changes nothing, and may run at any time.
    Starts Spark only with --spark, or where only Spark reaches the tables.

    Example: `demux reconcile --game chess --rounds`
    """
    settings = settings_of(settings_file, root, changes)
    source = [settings.source_path] if settings.source.kind is SourceKind.DELTA else []
    with session_to_look(settings, "reconcile", by_spark=by_spark, also=source) as spark, console.status("counting …"):
        ledger = Root(settings).reconcile(games or None, Grain.ROUND if rounds else Grain.GAME, spark)
    if json:
        typer.echo(ledger_json(ledger))
    else:
        console.print(ledger_text(ledger, everything or rounds))
    if not ledger.balances or (strict and ledger.holes):
        raise typer.Exit(ExitCode.UNBALANCED)
