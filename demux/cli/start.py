"""`demux init` and `demux produce`: a settings file, and events to play with."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from demux.cli.workplace import ROOT, SET, SETTINGS, console, settings_of
from demux.errors import SettingsInvalid
from demux.registry.folder import FolderRegistry
from demux.settings import Settings
from demux.settings_file import DEFAULT_FILE, template
from producer.delta_sink import DeltaSink
from producer.report import ProduceReport
from producer.request import ProduceRequest
from producer.run import MADE_BY, clean_up
from producer.run import produce as send


def init(
    file: Path = typer.Argument(DEFAULT_FILE, help="The file to write."),
    force: bool = typer.Option(False, "--force", help="Overwrite the file if it is there."),
) -> None:
    """Write a settings file with every setting, its default and a comment.

    Example: `demux init` then edit `demux.yml`.
    """
    if file.exists() and not force:
        raise SettingsInvalid(f"{file} is there already.", "Give --force to overwrite it.", path=str(file))
    file.write_text(template(), encoding="utf-8")
    console.print(f"wrote {file}")


def produce(
    events: int = typer.Option(20_000, help="New events."),
    games: int = typer.Option(20, help="Games with plain names."),
    hostile: int = typer.Option(0, help="More games, with names that try to do harm (at most 10)."),
    versions: int = typer.Option(3, help="Schema versions of each game."),
    fault_rate: float = typer.Option(0.01, help="Share of faulty events, 0 to 1."),
    seed: int = typer.Option(1, help="The same seed gives the same events."),
    resend: int = typer.Option(0, help="First send this many of the newest messages again."),
    clean: bool = typer.Option(False, "--clean-up", help="Remove what the producer made, and only that."),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Send simulated events of many games, wrapped, to the source table; register their schemas.

    Calling it again sends the next events.

    Example: `demux produce --events 100000 --games 50 --fault-rate 0.02`
    """
    settings = settings_of(settings_file, root, changes)
    if clean:
        report = clean_up(_registry(settings), DeltaSink(settings.source_path))
        target = "the source table" if report.target else "no source table of the producer's was there"
        console.print(f"removed: {target}; {len(report.schema_ids)} schemas")
        if report.target:
            console.print("bronze and silver stay; for a new start remove them with the root's folder")
        return
    request = ProduceRequest(events, games, hostile, versions, fault_rate, seed=seed, resend=resend)
    sent = produce_with_progress(settings, request)
    console.print(
        f"sent {sent.events:,} events of {len(sent.games)} games, {sum(sent.faults.values()):,} of them faulty, "
        f"and {sent.resent:,} again, to {settings.source_path}"
    )


def produce_with_progress(settings: Settings, request: ProduceRequest) -> ProduceReport:
    """Send the events behind a progress bar and return the producer's report."""
    with _bar() as progress:
        task = progress.add_task("producing events", total=request.events + request.resend)
        return send(
            request,
            _registry(settings),
            DeltaSink(settings.source_path),
            now=datetime.now(timezone.utc),
            on_progress=lambda sent: progress.advance(task, sent),
        )


def _registry(settings: Settings) -> FolderRegistry:
    return FolderRegistry(Path(settings.registry_path), made_by=MADE_BY)


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
