"""`demux ingest`, `plan`, `run` and `deserialize`: the flow, whole or stage by stage."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import typer
from rich.text import Text

from demux.cli.progress import RoundProgress
from demux.cli.tables import round_table
from demux.cli.workplace import DECODER, ROOT, SET, SETTINGS, WAIT, Workplace, console, settings_of, workplace
from demux.errors import DemuxError, ExitCode, Kind, SettingsInvalid
from demux.reports import IngestReport
from demux.settings import Decoder
from demux.streams import TAKE_ALL, AvailableNow, Every, Trigger
from demux.text import printable
from install_workflow.engine import run_tasks
from install_workflow.plan import Task
from install_workflow.render import as_json, as_text
from install_workflow.run import Round, look, record_of, run_round

EVERY = typer.Option(None, help="Go on for ever, one round every 30s, 5m or 1h.", metavar="TIME")
_UNITS = {"s": 1, "m": 60, "h": 3600}


def ingest(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    wait: bool = WAIT,
    every: str | None = EVERY,
    accept_gaps: bool = typer.Option(
        False, "--accept-gaps", help="Go on where Kafka has lost records that were not read yet; writes the gap down."
    ),
) -> None:
    """Take everything new in the source into bronze, or into quarantine.

    Example: `demux ingest --set source.path=/data/wrappers`
    """
    pause_s = None if every is None else seconds_of(every)
    with workplace(settings_of(settings_file, root, changes), "ingest", lock=True, wait=wait) as place:
        if pause_s is None:
            with console.status("unwrapping …"):
                report = place.ingest(accept_gaps=accept_gaps)
            _print_ingested(report)
            return
        trigger = Every(pause_s, place.stop)
        for_ever(place, pause_s, lambda: place.ingest(trigger, accept_gaps=accept_gaps, on_batch=_print_ingested))


def _print_ingested(report: IngestReport) -> None:
    console.print(
        f"{report.rows_in:,} records: {report.rows_bronze:,} to bronze, {report.rows_quarantined:,} to quarantine"
    )


def plan(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    json: bool = typer.Option(False, "--json", help="Print the plan as JSON."),
    everything: bool = typer.Option(False, "--all", help="Also list what stays as it is."),
) -> None:
    """Show which game would run where, what would change, and which games wait; change nothing.

    Example: `demux plan --set games.limit=10`
    """
    with workplace(settings_of(settings_file, root, changes), "plan", lock=False) as place:
        outlook = look(place.spark, place.settings, place.control)
    text = as_json(outlook.plan) if json else as_text(outlook.plan, everything)
    console.print(text, soft_wrap=True)


def run(
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    decoder: Decoder | None = DECODER,
    wait: bool = WAIT,
    every: str | None = EVERY,
) -> None:
    """Run bronze, then every game of the plan that has new rows. SIGINT and SIGTERM finish what is under way.

    Example: `demux run --every 30s`
    """
    pause_s = None if every is None else seconds_of(every)
    with workplace(settings_of(settings_file, root, changes, decoder), "run", lock=True, wait=wait) as place:
        trigger = TAKE_ALL if pause_s is None else AvailableNow(enough_s=place.settings.run.bronze_s)

        def once() -> ExitCode:
            began = time.monotonic()
            result = one_round(place, trigger)
            console.print(round_table(result, time.monotonic() - began))
            return exit_code(result)

        if pause_s is None:
            raise typer.Exit(once())
        for_ever(place, pause_s, once)


def for_ever(place: Workplace, pause_s: float, once: Callable[[], object]) -> None:
    """Call `once` every `pause_s` seconds until the place's `stop` is set; what fails for now is told and tried again.

    Raises:
        DemuxError: the source cannot be read at the very first time, when somebody is watching; or a terminal failure.
    """
    place.check_source()
    while not place.stop.is_set():
        began = time.monotonic()
        try:
            once()
        except DemuxError as error:
            if error.kind is not Kind.TRANSIENT:
                raise
            console.print(str(error), style="red", soft_wrap=True)
        place.stop.wait(max(0.0, began + pause_s - time.monotonic()))


def deserialize(
    game: str = typer.Option(..., "--game", help="The exact game name."),
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
    decoder: Decoder | None = DECODER,
    wait: bool = WAIT,
) -> None:
    """Decode one game's new bronze rows into its silver table.

    Example: `demux deserialize --game chess`
    """
    from demux.names import names_of
    from deserializer.repair import require_game

    with workplace(settings_of(settings_file, root, changes, decoder), "deserialize", lock=True, wait=wait) as place:
        require_game(place.spark, place.layout, game)
        task = Task(game, names_of(game).task_key, "this machine")
        with console.status(Text(f"decoding {printable(game)} …")):
            ended = run_tasks(
                place.spark, [task], lambda task: place.deserialize(task.game), place.settings.run, place.stop
            )
        if not ended:
            raise typer.Exit(ExitCode.INTERRUPTED)
        (end,) = ended
        place.control.close_round([record_of(end, uuid.uuid4().hex[:12])], None)
        if end.error is not None:
            raise end.error
        assert end.report is not None
        console.print(
            f"{end.report.rows_in:,} rows: {end.report.rows_silver:,} to silver, "
            f"{end.report.rows_quarantined:,} to quarantine, in {end.seconds:.1f} s"
        )


def one_round(place: Workplace, trigger: Trigger = TAKE_ALL) -> Round:
    """Run one round behind progress bars and return what it did."""
    with RoundProgress() as progress:
        return run_round(
            place.spark,
            place.settings,
            place.control,
            lambda: place.ingest(trigger),
            place.deserialize,
            place.stop,
            progress.observer(),
        )


def exit_code(result: Round) -> ExitCode:
    """Return the exit code of a round: failures first, then an interruption."""
    errors = [end.error for end in result.ended if end.error is not None]
    if errors:
        return ExitCode.TRANSIENT if all(e.kind is Kind.TRANSIENT for e in errors) else ExitCode.GAMES_FAILED
    return ExitCode.OK if result.complete else ExitCode.INTERRUPTED


def seconds_of(text: str) -> float:
    """Return the seconds of `30s`, `5m`, `1h` or `30`.

    Raises:
        SettingsInvalid: it is none of these, not positive, or longer than a thread can wait.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise SettingsInvalid(f"--every {text!r} is not a time.", "Write 30s, 5m or 1h.", option=text)
    return seconds
