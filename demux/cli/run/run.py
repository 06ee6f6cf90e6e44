"""`demux ingest`, `run` and `deserialize`: the flow, whole or stage by stage."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import typer
from rich.text import Text

from demux.cli.command import command_context, console, print_failure
from demux.cli.output.print_json import print_json
from demux.cli.output.progress import RoundProgress
from demux.cli.output.reports import failures_of, game_content, round_content, round_table
from demux.cli.repair.maintain import maintain_if_due
from demux.core.control.deployments_table import copy_record
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError, ErrorKind, ExitCode, GameUnknown, SessionLost, SettingsInvalid, exit_code_of
from demux.core.names import is_key, names_of
from demux.core.reports import GameReport, IngestReport
from demux.core.root.lock import Access
from demux.core.schemas.registry_selection import Registries, unused_names
from demux.core.settings.settings import Settings
from demux.core.streaming.query import Every
from demux.core.text import printable
from demux.core.time_expressions import seconds_of
from demux.pipeline.bronze_stream import BronzeStream
from demux.pipeline.context import CommandContext
from demux.pipeline.engines import decode_of
from demux.pipeline.observers.observer import Observer
from demux.pipeline.round import Round, run_all, run_games, run_ingest, run_round
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Task

# with a session that is lost, before the next one is an error
_TRIES = 2
# a round without new rows has hardly anything to do
_IDLE_S = 10.0
# between two looks at whether another command waits for the root
_LOOK_S = 0.5
# in a store, whoever waits for the root looks twice a second
_AWAY_S = 1.0


def ingest(
    settings: Settings, wait: bool, every: str | None, deployment_record: Path | None, accept_gaps: bool
) -> None:
    """Read all new records of the source into bronze, or into quarantine."""
    pause_s = None if every is None else seconds_of(every)
    with command_context(settings, "ingest", Access.ALONE, wait=wait) as place:
        if deployment_record is not None:
            copy_record(place.spark, place.layout, deployment_record)
        if pause_s is None:
            with console.status("unwrapping …"):
                report = run_ingest(place, accept_gaps=accept_gaps)
            _print_ingested(report)
            return
        trigger = Every(pause_s, place.stop)

        def ingest_on() -> None:
            run_ingest(place, trigger, accept_gaps=accept_gaps, on_batch=_print_ingested)

        def pause() -> None:
            with place.away():
                place.stop.wait(pause_s)

        for_ever(place, ingest_on, pause)


def _print_ingested(report: IngestReport) -> None:
    console.print(
        f"{report.rows_in:,} records: {report.rows_bronze:,} to bronze, {report.rows_quarantined:,} to quarantine"
    )


def run(settings: Settings, json: bool, wait: bool, every: str | None) -> None:
    """Run bronze, then every game of the plan that has new rows. SIGINT and SIGTERM finish what is under way."""
    pause_s = None if every is None else seconds_of(every)
    _warn_of_unused_names(settings)
    reconnecting(lambda worked: _run(settings, pause_s, worked, json=json, wait=wait))


def _run(settings: Settings, pause_s: float | None, worked: Callable[[], None], *, json: bool, wait: bool) -> None:
    with command_context(settings, "run", Access.ALONE, wait=wait) as place:

        def once(work: Callable[..., Round]) -> Round:
            began = time.monotonic()
            result = with_progress(work)
            _print_round(result, time.monotonic() - began, json=json)
            if lost := next((end.error for end in result.ended if isinstance(end.error, SessionLost)), None):
                raise lost
            worked()
            return result

        if pause_s is None:
            code = exit_code(once(partial(run_all, place)))
            maintain_if_due(place)
            raise typer.Exit(code)
        bronze = BronzeStream(lambda trigger, on_batch: place.ingest(trigger, on_batch=on_batch), pause_s)
        with bronze.running():
            rounds = _Rounds(place, bronze, partial(run_round, place, decode_of(place, settings.round_engine)), once)
            for_ever(place, rounds.run_next, lambda: rounds.pause(pause_s))


class _Rounds:
    """Rounds beside bronze: one when bronze took something in, when the last one left something, and now and then."""

    def __init__(
        self,
        place: CommandContext,
        bronze: BronzeStream,
        run: Callable[..., Round],
        report: Callable[[Callable[..., Round]], Round],
    ) -> None:
        """Prepare; `run` makes a round with what bronze took in, `report` calls it and prints what it did."""
        self._place = place
        self._bronze = bronze
        self._work = partial(run, take=bronze.take)
        self._report = report
        self._began = 0.0
        self._is_done = False

    def run_next(self) -> None:
        """Make a round; then maintain the tables, where that is due, without bronze beside it."""
        self._began, self._is_done = time.monotonic(), False
        result = self._report(self._work)
        self._is_done = exit_code(result) is ExitCode.OK and not any(
            end.report is not None and end.report.rows_waiting for end in result.ended
        )
        maintain_if_due(self._place, self._bronze.stop)

    def pause(self, pause_s: float) -> None:
        """Return when it is time for the next round; whoever waits for the root has it in between.

        Raises:
            KeyboardInterrupt: as `HeldRoot.away`.
        """
        place, bronze = self._place, self._bronze
        until = self._began + (max(pause_s, _IDLE_S) if self._is_done else pause_s)
        while not place.stop.is_set():
            if place.is_wanted:
                bronze.stop()
                with place.away():
                    place.stop.wait(_AWAY_S)
            left_s = until - time.monotonic()
            if left_s <= 0 or bronze.wait(min(_LOOK_S, left_s)):
                return


def _print_round(result: Round, seconds: float, *, json: bool) -> None:
    if json:
        print_json(round_content(result, seconds), indent=None)
    else:
        console.print(round_table(result, seconds))
    if json or console.quiet:
        for line in failures_of(result):
            print_failure(line)


def reconnecting(work: Callable[[Callable[[], None]], None]) -> None:
    """Do the work, again with a new session where the server of one that worked went away.

    Args:
        work: begins with a session of its own; it calls what it is given when something is done.

    Raises:
        SessionLost: the server went away, and did so again before anything was done.
    """
    tries = _TRIES

    def worked() -> None:
        nonlocal tries
        tries = _TRIES

    while True:
        try:
            return work(worked)
        except Exception as error:
            lost, tries = as_demux_error(error), tries - 1
            if not isinstance(lost, SessionLost):
                raise
            if not tries:
                raise lost from error
            console.print(f"{lost}\nconnecting again …", style="yellow", soft_wrap=True)


def _warn_of_unused_names(settings: Settings) -> None:
    for sentence in unused_names(settings, Registries(settings, os.environ)):
        console.print(printable(sentence), style="yellow", soft_wrap=True)


def for_ever(place: CommandContext, once: Callable[[], object], pause: Callable[[], object]) -> None:
    """Call `once`, then `pause`, until the place's `stop` is set; transient failures are printed.

    In a pause, other commands may have the root.

    Raises:
        DemuxError: the source cannot be read at the very first time, when a person is watching; or a terminal failure.
    """
    place.check_source()
    while not place.stop.is_set():
        try:
            once()
        except DemuxError as error:
            if error.kind is not ErrorKind.TRANSIENT:
                raise
            print_failure(str(error))
        try:
            pause()
        except KeyboardInterrupt:
            # a signal came while others had the root; nothing is under way
            return


def deserialize(
    settings: Settings, games: list[str], keys: list[str], json: bool, wait: bool, ignore_unknown: bool
) -> None:
    """Decode the new bronze rows of one game or several into their silver tables; a game's failure stops no other."""
    wanted = _wanted(games, keys)
    _warn_of_unused_names(settings)
    with command_context(settings, "deserialize", Access.ALONE, wait=wait) as place:
        games = _find_games(place, wanted, ignore_unknown=ignore_unknown)
        tasks = tuple(Task(name, names_of(name).task_key, "this machine") for name in games)
        with console.status(Text(f"decoding {', '.join(printable(task.game) for task in tasks)} …")):
            ended = run_games(place, tasks, _PrintEnded(json=json))
    raise typer.Exit(_worst(ended, complete=len(ended) == len(tasks)))


def _wanted(games: Iterable[str], keys: Iterable[str]) -> dict[str, str | None]:
    """Return the games that were asked for by key, each once, with the exact name where it was given."""
    wanted: dict[str, str | None] = {**dict.fromkeys(keys), **{names_of(name).key: name for name in games}}
    if not wanted:
        raise SettingsInvalid("Say which game.", "Give --game NAME, or --game-key KEY.")
    # reported before Spark starts
    for key in wanted:
        if not is_key(key):
            raise _unknown_key(key)
    return wanted


def _find_games(place: CommandContext, wanted: Mapping[str, str | None], *, ignore_unknown: bool) -> list[str]:
    """Return the exact names of the games of these keys that bronze has rows of, sorted; print which it has none of.

    Raises:
        GameUnknown: bronze has no rows of one of them, and that is not to be ignored; nothing was decoded.
    """
    from deserializer.redecode.redecoder import no_rows_of

    known = _in_bronze(place, wanted)
    for key, name in wanted.items():
        if key not in known:
            error = _unknown_key(key) if name is None else no_rows_of(name)
            if not ignore_unknown:
                raise error
            console.print(f"{printable(error.message)} There is nothing to do.", style="yellow", soft_wrap=True)
    return sorted(known[key] for key in wanted if key in known)


def _in_bronze(place: CommandContext, wanted: Mapping[str, str | None]) -> dict[str, str]:
    """Return the exact names of games that bronze has or had rows of, by key, these games among them if they are."""
    if not place.layout.storage.table_exists(place.layout.bronze):
        return {}
    known = {names_of(name).key: name for name in place.control.known_games()}
    missing = {key: name for key, name in wanted.items() if key not in known}
    if not missing:
        return known
    # to find a name by its key takes a look at all games of bronze
    named = [name for name in missing.values() if name is not None]
    among = named if len(named) == len(missing) else None
    return known | {names_of(name).key: name for name in games_in_bronze(place.spark, place.layout, among)}


def _unknown_key(key: str) -> GameUnknown:
    return GameUnknown(
        f"No game has the key {printable(key)!r}.",
        "A key is the name of the game's table below silver; `demux status` has the games' names, for --game.",
        key=key,
    )


class _PrintEnded(Observer):
    """Prints how each game's task ended."""

    def __init__(self, *, json: bool) -> None:
        """Print sentences, and JSON beside them."""
        self._json = json

    def ended(self, end: TaskEnd[GameReport]) -> None:
        """Print it."""
        name = printable(end.task.game)
        if self._json:
            print_json(game_content(end), indent=None)
        if end.report is None:
            print_failure(f"{end.task.game}: {end.error}")
            return
        console.print(
            f"{name}: {end.report.rows_in:,} rows: {end.report.rows_silver:,} to silver, "
            f"{end.report.rows_quarantined:,} to quarantine, in {end.seconds:.1f} s"
            + (f"; about {end.report.rows_waiting:,} wait for the next run" if end.report.rows_waiting else ""),
            soft_wrap=True,
        )


def with_progress(work: Callable[..., Round]) -> Round:
    """Return what a round did that progress bars observe."""
    with RoundProgress() as progress:
        return work(observer=progress)


def exit_code(result: Round) -> ExitCode:
    """Return the exit code of a round: failures first, then an interruption."""
    return _worst(result.ended, complete=result.complete)


def _worst(ended: Iterable[TaskEnd[GameReport]], *, complete: bool) -> ExitCode:
    if errors := [end.error for end in ended if end.error is not None]:
        return exit_code_of(errors)
    return ExitCode.OK if complete else ExitCode.INTERRUPTED
