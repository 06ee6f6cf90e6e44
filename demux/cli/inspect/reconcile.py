"""`demux reconcile`: prove from the tables that every record is in exactly one place, or say which is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from demux.cli.command import console, session_to_look
from demux.cli.inspect.reconcile_text import ledger_content, ledger_text
from demux.cli.output.print_json import print_json
from demux.core.errors import ExitCode
from demux.core.root.layout import layout_of
from demux.core.settings.settings import Settings
from demux.core.settings.source import SourceKind
from demux.operations.reconcile.balance import Grain, Ledger
from demux.operations.reconcile.reconcile import reconcile as reconciled
from demux.pipeline.read_offsets import game_offsets, source_offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reconcile(
    settings: Settings, games: list[str], rounds: bool, everything: bool, json: bool, strict: bool, by_spark: bool
) -> None:
    """Prove that every record is in exactly one place, from the tables alone; exit code 6 if one is not."""
    source = [settings.source_path] if settings.source.kind is SourceKind.DELTA else []
    with session_to_look(settings, "reconcile", by_spark=by_spark, also=source) as spark, console.status("counting …"):
        ledger = ledger_of(settings, games or None, Grain.ROUND if rounds else Grain.GAME, spark)
    if json:
        print_json(ledger_content(ledger))
    else:
        console.print(ledger_text(ledger, everything or rounds))
    if not ledger.balances or (strict and ledger.holes):
        raise typer.Exit(ExitCode.UNBALANCED)


def ledger_of(
    settings: Settings,
    games: list[str] | None = None,
    grain: Grain = Grain.GAME,
    spark: SparkSession | None = None,
) -> Ledger:
    """Return the ledger of a root, whichever engine and source it has; as `reconcile.reconcile`."""
    layout = layout_of(settings)
    return reconciled(spark, layout, game_offsets(spark, layout), source_offsets(spark, settings), games, grain)
