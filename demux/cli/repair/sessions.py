"""`demux sessions`: a game's events as sessions, with what is new in its silver table."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import typer

from demux.cli.command import ROOT, SET, SETTINGS, TAKE_TURNS, command_context, settings_of
from demux.cli.repair.per_game import each_game
from demux.core.errors import SettingsInvalid
from demux.core.root.lock import Access
from demux.core.text import counted_rows, printable
from demux.core.time_expressions import age_of
from demux.operations.sessions import LONGEST_GAP, ClosedBy, SessionSpec, SessionsReport, run_sessions

_GAME = typer.Option(..., "--game", help="The exact game name. May be repeated.", metavar="NAME")
_BY = typer.Option(
    ..., "--by", help="Column of silver that a session's events share. May be repeated.", metavar="COLUMN"
)


def sessions(
    game: list[str] = _GAME,
    by: list[str] = _BY,
    gap: str = typer.Option(..., "--gap", help="The longest pause in a session: 90s, 30m, 2h, 1d.", metavar="TIME"),
    lateness: str = typer.Option("10m", "--lateness", help="How long to wait for late events.", metavar="TIME"),
    time: str = typer.Option("_timestamp", "--time", help="Column with the time of an event.", metavar="COLUMN"),
    flush: bool = typer.Option(False, "--flush", help="Then close all sessions; later events begin new ones."),
    rebuild: bool = typer.Option(
        False, "--rebuild", help="Forget the sessions there are, and make them from all of silver."
    ),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    wait: bool = TAKE_TURNS,
) -> None:
    """Take what is new in a game's silver table into its table of sessions; late events are counted, never lost.

    Example: `demux sessions --game chess --by user_name --gap 30m`
    """
    pause, patience = length_of("--gap", gap, timedelta(seconds=1)), length_of("--lateness", lateness, timedelta(0))
    columns = tuple(dict.fromkeys(by))
    with command_context(settings_of(settings_file, root, changes), "sessions", Access.TURNS, wait=wait) as place:

        def make(name: str) -> str:
            spec = SessionSpec(name, columns, pause, time)
            report = run_sessions(place.spark, place.layout, spec, patience, _now, flush=flush, rebuild=rebuild)
            return "\n".join(as_lines(report))

        each_game(place, dict.fromkeys(game), "making sessions of", make)


def as_lines(report: SessionsReport) -> list[str]:
    """Return what the command says of one game."""
    rows, late, untimed = (
        sum(getattr(step, name) for step in report.new) for name in ("rows_in", "rows_late", "rows_untimed")
    )
    there, late_ever = report.sessions, sum(step.rows_late for step in report.all)
    unread = report.rows_silver - sum(step.rows_in for step in report.all)
    flushed, over = there.get(ClosedBy.FLUSH.value, 0), there.get(ClosedBy.WATERMARK.value, 0)
    lines = [
        f"{counted_rows(rows)} taken in, {late:,} late, {untimed:,} without a time",
        f"  sessions: {over:,} closed by the watermark, {flushed:,} by a flush, {there.get(None, 0):,} open; "
        f"{counted_rows(late_ever)} late since the beginning",
    ]
    if unread > 0:
        lines.append(f"  {counted_rows(unread)} of silver came by repairs, which are skipped; --rebuild takes all")
    return lines


def length_of(option: str, text: str, least: timedelta) -> timedelta:
    """Return the length of time that an option gives.

    Raises:
        SettingsInvalid: it is none, or shorter than `least`, or longer than ten years.
    """
    found = age_of(text)
    if found is None or not least <= found <= LONGEST_GAP:
        raise SettingsInvalid(
            f"{option} {printable(text)!r} is no length of time that sessions can have.",
            f"Write 90s, 30m, 2h or 1d, from {least // timedelta(seconds=1)}s to 3650d.",
            option=option,
        )
    return found


def _now() -> datetime:
    return datetime.now(timezone.utc)
