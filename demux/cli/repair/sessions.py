"""`demux sessions`: a game's events as sessions, with what is new in its silver table."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from demux.cli.command import command_context
from demux.cli.repair.per_game import each_game
from demux.core.errors import SettingsInvalid
from demux.core.root.lock import Access
from demux.core.settings.settings import Settings
from demux.core.text import counted_rows, printable
from demux.core.time_expressions import age_of
from demux.operations.sessions import LONGEST_GAP, ClosedBy, SessionSpec, SessionsReport, run_sessions


def sessions(
    settings: Settings,
    game: list[str],
    by: list[str],
    gap: str,
    lateness: str,
    time: str,
    flush: bool,
    rebuild: bool,
    wait: bool,
) -> None:
    """Take what is new in a game's silver table into its table of sessions; late events are counted, never lost."""
    pause, patience = length_of("--gap", gap, timedelta(seconds=1)), length_of("--lateness", lateness, timedelta(0))
    columns = tuple(dict.fromkeys(by))
    with command_context(settings, "sessions", Access.TURNS, wait=wait) as place:

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
