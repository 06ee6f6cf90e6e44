"""`demux reconcile`: prove from the tables that every record is in exactly one place, or say which is not."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.ledger_text import ledger_json, ledger_text
from demux.cli.positions import source_stand_of, stands_of
from demux.cli.workplace import ROOT, SET, SETTINGS, console, settings_of, workplace
from demux.errors import ExitCode
from demux.ledger.account import Grain, Ledger
from demux.ledger.reconcile import reconcile as reconciled
from demux.lock import Access
from demux.pipeline.context import Workplace


def reconcile(
    games: list[str] = typer.Option([], "--game", help="Only this game (exact name). May be repeated."),
    rounds: bool = typer.Option(False, "--rounds", help="An account of each round (batch of bronze) of each game."),
    everything: bool = typer.Option(False, "--all", help="Also list the games that balance."),
    json: bool = typer.Option(False, "--json", help="Print the ledger as JSON."),
    strict: bool = typer.Option(
        False, "--strict", help="Holes in Kafka's offsets count: for topics without transactions and compaction."
    ),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Prove that every record is in exactly one place, from the tables alone; exit code 6 if one is not.

    Records in the source = bronze + retired + quarantine + dropped + forgotten; bronze + retired = silver +
    quarantine + dropped + waiting. Retired is what `demux maintain` took out of bronze, being old; dropped what
    `demux quarantine drop` took away; forgotten what `demux forget` did. Changes nothing, and may run at any time.

    Example: `demux reconcile --game chess --rounds`
    """
    with workplace(settings_of(settings_file, root, changes), "reconcile", Access.LOOK) as place:
        with console.status("counting …"):
            ledger = ledger_of(place, games or None, Grain.ROUND if rounds else Grain.GAME)
        if json:
            typer.echo(ledger_json(ledger))
        else:
            console.print(ledger_text(ledger, everything or rounds))
    if not ledger.balances or (strict and ledger.holes):
        raise typer.Exit(ExitCode.UNBALANCED)


def ledger_of(place: Workplace, games: list[str] | None = None, grain: Grain = Grain.GAME) -> Ledger:
    """Return the ledger of a root, whichever engine and source it has; as `demux.ledger.reconcile.reconcile`."""
    stands, source = stands_of(place.spark, place.layout), source_stand_of(place.spark, place.settings)
    return reconciled(place.spark, place.layout, stands, source, games, grain)
