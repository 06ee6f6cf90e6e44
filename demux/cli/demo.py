"""`demux demo`: the whole flow on simulated games; again, and it continues."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from demux.cli.flow import exit_code, one_round
from demux.cli.look import print_status
from demux.cli.start import produce_with_progress
from demux.cli.tables import round_table
from demux.cli.workplace import ROOT, SET, SETTINGS, console, logs_of, settings_of, workplace
from producer.request import ProduceRequest


def demo(
    events: int = typer.Option(20_000, help="New events."),
    games: int = typer.Option(20, help="Games."),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Produce events of 20 games in 3 schema versions, 1 % of them faulty, run everything, and show where they are.

    Calling it again continues with new events; nothing is doubled.

    Example: `demux demo --events 100000`
    """
    settings = settings_of(settings_file, root, changes)
    began = time.monotonic()
    produce_with_progress(settings, ProduceRequest(events=events, games=games, versions=3, fault_rate=0.01))
    with workplace(settings, "demo", lock=True) as place:
        result = one_round(place)
        failures = [end for end in result.ended if end.error is not None]
        if failures:
            console.print(round_table(result, time.monotonic() - began))
        print_status(place)
    console.print(f"{time.monotonic() - began:.0f} s; Spark's log is {logs_of(settings) / 'spark.log'}", soft_wrap=True)
    command = _command(settings_file, root)
    first = result.plan.tasks[0].game if result.plan.tasks else "chess"
    console.print("\nTry next:", style="bold")
    console.print(f"  {command} show {first}{_place(root)}            # the newest rows of a table")
    console.print(f"  {command} produce --versions 4{_place(root)}    # events with a new schema version")
    console.print(
        f"  {command} run{_place(root)}                     # take them in; {command} plan shows who runs where"
    )
    raise typer.Exit(exit_code(result))


def _command(settings_file: Path | None, root: str | None) -> str:
    return "demux" if settings_file is None else f"demux -c {settings_file}"


def _place(root: str | None) -> str:
    return "" if root is None else f" --root {root}"
