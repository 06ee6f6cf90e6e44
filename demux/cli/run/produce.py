"""`demux init` and `demux produce`: a settings file, and events to play with."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from demux.cli.command import console
from demux.core.errors import SettingsInvalid
from demux.core.registry.protocol import ErasableRegistry
from demux.core.root.layout import layout_of
from demux.core.schemas.registry_selection import open_registry
from demux.core.settings.loading.template import template
from demux.core.settings.settings import Settings
from demux.core.settings.source import SourceKind
from producer.records import EventSink
from producer.run import MADE_BY, ProduceReport, ProduceRequest, clean_up
from producer.run import produce as send


def init(file: Path, force: bool) -> None:
    """Write a settings file with every setting, its default and a comment."""
    if file.exists() and not force:
        raise SettingsInvalid(f"{file} is there already.", "Give --force to overwrite it.", path=str(file))
    file.write_text(template(), encoding="utf-8")
    console.print(f"wrote {file}")


def produce(
    settings: Settings,
    events: int,
    games: int,
    hostile: int,
    versions: int,
    fault_rate: float,
    seed: int,
    resend: int,
    clean: bool,
) -> None:
    """Send simulated events of many games, wrapped, to the source table or topic; register their schemas."""
    if clean:
        report = clean_up(_registry(settings), _sink(settings))
        target = (
            target_of(settings) if report.target else f"nothing, as the producer did not make {target_of(settings)}"
        )
        console.print(f"removed: {target}; {len(report.schema_ids)} schemas", soft_wrap=True)
        if report.target:
            console.print("bronze and silver stay; for a new start remove them with the root's folder")
        return
    request = ProduceRequest(events, games, hostile, versions, fault_rate, seed=seed, resend=resend)
    sent = produce_with_progress(settings, request)
    console.print(
        f"sent {sent.events:,} events of {len(sent.games)} games, {sum(sent.faults.values()):,} of them faulty, "
        f"and {sent.resent:,} again, to {target_of(settings)}",
        soft_wrap=True,
    )


def produce_with_progress(settings: Settings, request: ProduceRequest) -> ProduceReport:
    """Send the events behind a progress bar and return the producer's report."""
    with _bar() as progress:
        task = progress.add_task("producing events", total=request.events + request.resend)
        return send(
            request,
            _registry(settings),
            _sink(settings),
            now=datetime.now(timezone.utc),
            on_progress=lambda sent: progress.advance(task, sent),
        )


def _registry(settings: Settings) -> ErasableRegistry:
    return open_registry(settings, made_by=MADE_BY, environ=os.environ)


def _sink(settings: Settings) -> EventSink:
    match settings.source.kind:
        case SourceKind.DELTA:
            from producer.delta_sink import DeltaSink

            return DeltaSink(settings.source_path, storage=layout_of(settings).storage)
        case SourceKind.KAFKA:
            # an extra brings its library
            from producer.kafka.sink import KafkaSink

            return KafkaSink(settings.kafka, os.environ)
        case SourceKind.FILES:
            raise SettingsInvalid(
                "The producer does not write archives.", "Set `source.kind` to delta or kafka.", kind="files"
            )


def target_of(settings: Settings) -> str:
    """Return what people call the producer's target."""
    if settings.source.kind is SourceKind.KAFKA:
        return f"topic {settings.kafka.topics[0]} at {settings.kafka.bootstrap_servers}"
    return settings.source_path


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
