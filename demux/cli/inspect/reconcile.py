"""`demux reconcile`: prove from the tables that every record is in exactly one place, or say which is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from demux.api.root import Root
from demux.cli.command import console, session_to_look
from demux.cli.inspect.reconcile_text import ledger_content, ledger_text
from demux.cli.output.print_json import print_json
from demux.core.errors import ExitCode
from demux.core.settings.settings import Settings
from demux.core.settings.source import SourceKind
from demux.operations.reconcile.balance import Grain

if TYPE_CHECKING:
    pass


def reconcile(
    settings: Settings, games: list[str], rounds: bool, everything: bool, json: bool, strict: bool, by_spark: bool
) -> None:
    """Prove that every record is in exactly one place, from the tables alone; exit code 6 if one is not."""
    source = [settings.source_path] if settings.source.kind is SourceKind.DELTA else []
    with session_to_look(settings, "reconcile", by_spark=by_spark, also=source) as spark, console.status("counting …"):
        ledger = Root(settings).reconcile(games or None, Grain.ROUND if rounds else Grain.GAME, spark)
    if json:
        print_json(ledger_content(ledger))
    else:
        console.print(ledger_text(ledger, everything or rounds))
    if not ledger.balances or (strict and ledger.holes):
        raise typer.Exit(ExitCode.UNBALANCED)
