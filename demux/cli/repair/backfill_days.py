"""The flow of `demux backfill --from --to`: what there is to do, wave by wave, and what has become of it."""

from __future__ import annotations

import logging
import shlex
import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import typer

from demux.cli.command import console, print_failure, warn
from demux.cli.output.documents.repairs import BackfillEstimateJson
from demux.cli.output.print_json import print_json
from demux.cli.output.progress import BackfillProgress
from demux.cli.output.reports import backfill_content, backfill_table, backfills_table
from demux.core.control.games_and_rounds import Control
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError, ExitCode, RangeInvalid, exit_code_of
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.text import count_text, first_few, printable
from demux.operations.quarantine.filter import require_game
from demux.pipeline.context import CommandContext
from demux.pipeline.engines import decode_of
from demux.pipeline.task_pool import TaskEnd, run_tasks
from deserializer.offsets.bronze_days import plain_bronze, rows_by_day_of_files
from deserializer.redecode.backfill_plan import (
    Backfill,
    BackfillChunk,
    BackfillRequest,
    BronzeDays,
    Day,
    DayState,
    chunks,
    complete_days,
    estimate,
    find_unfinished_backfill,
    mark_failed,
    require_found,
    to_do,
    waves,
)
from deserializer.redecode.backfill_state import backfills, record
from deserializer.redecode.redecoder import Redecoder
from deserializer.redecode.source import BronzeRows, Redecoded, read_rows, retired_rows, rows_by_day
from install_workflow.planning.plan import Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# of days that are done in one commit: so many that commits cost little, and few seconds of work
CHUNK_ROWS = 250_000
# of games that are done in one Spark job
_WAVE_ROWS = 1_000_000
_WAVE_GAMES = 200
_LISTED = 10
_LOG = logging.getLogger("demux")


class Backfilling:
    """One backfill; continues one that a run before has begun."""

    def __init__(self, place: CommandContext, wanted: BackfillRequest) -> None:
        """Look at what there is to do; nothing is written.

        Raises:
            GameUnknown: bronze has no rows of a game that is asked for.
            RangeInvalid: bronze has no row of the range.
        """
        days, before, undated = _days_to_do(place.spark, place.layout, wanted)
        self._place = place
        self._is_new = before is None
        self._undated = undated
        self._failed: dict[str, DemuxError] = {}
        run = place.settings.run
        self._redecoder = Redecoder(place.spark, place.layout, place.schemas, run.sink, place.tables, run.parallelism)
        begun = _now() if before is None else before.begun
        self._backfill = Backfill(uuid.uuid4().hex if before is None else before.id, wanted, begun, days)

    @property
    def backfill(self) -> Backfill:
        """The days of the backfill, with their state."""
        return self._backfill

    def run(self) -> None:
        """Do it, and tell; between two waves others may have the root.

        Raises:
            Exit: with the code of what has failed, or of an interruption.
        """
        backfill = self._backfill
        done = sum(day.state is DayState.DONE for day in backfill.days)
        how_far = "new" if self._is_new else f"continues, {done:,} of {len(backfill.days):,} days are done"
        console.print(f"backfill {backfill.id} ({how_far})")
        # what is to be done is written down before anything is
        waiting = [replace(day, state=DayState.WAITING) for day in backfill.days if day.state is not DayState.DONE]
        self._record(waiting)
        self._refuse_retired()
        with BackfillProgress(backfill.rows(*DayState), backfill.rows(DayState.DONE)) as progress:
            left = chunks([day for day in self._backfill.days if day.game not in self._failed], CHUNK_ROWS)
            games = _WAVE_GAMES if self._place.settings.run.parallelism > 1 else 1
            for number, wave in enumerate(waves(left, games, _WAVE_ROWS)):
                if number:
                    self._place.give_way()
                if self._place.stop.is_set():
                    break
                self._wave([chunk for chunk in wave if chunk.game not in self._failed], progress)
        self._tell()

    def _wave(self, wave: Collection[BackfillChunk], progress: BackfillProgress) -> None:
        place = self._place
        by_game = {chunk.game: chunk for chunk in wave}
        began = time.monotonic()
        plain = self._decode_many(by_game, began)
        for game in plain:
            progress.advance(by_game[game].rows, game)
        tasks = [_task(game) for game in by_game if game not in plain]

        def work(task: Task) -> Redecoded:
            source = self._read([by_game[task.game]])[task.game]
            if isinstance(source, DemuxError):
                raise source
            return self._redecoder.replace(source, _request())

        one_by_one = []
        for end in run_tasks(place.spark, tasks, work, place.settings.run, place.stop):
            chunk = by_game[end.task.game]
            progress.advance(chunk.rows, end.task.game)
            one_by_one.append(self._ended(chunk, end))
        self._record([day for days in (*plain.values(), *one_by_one) for day in days])

    def _decode_many(self, by_game: Mapping[str, BackfillChunk], began: float) -> dict[str, tuple[Day, ...]]:
        """Return the days of the games that were done in one Spark job, since then; the others are left."""
        try:
            found = self._read(by_game.values()).values()
            done = self._redecoder.replace_many([one for one in found if isinstance(one, BronzeRows)], _request())
        except Exception as error:  # one by one, it shows which game it is
            _LOG.info("days of games are decoded one by one: %s", as_demux_error(error))
            return {}
        rows = max(1, sum(by_game[game].rows for game in done))
        seconds = (time.monotonic() - began) / rows
        return {
            game: complete_days(by_game[game], one.counts, seconds * by_game[game].rows) for game, one in done.items()
        }

    def _read(self, chunks: Iterable[BackfillChunk]) -> dict[str, BronzeRows | DemuxError]:
        """Return the rows of the days that each game has read, or why that is unknown."""
        place, spans = self._place, {chunk.game: chunk.span for chunk in chunks}
        threads = place.settings.run.parallelism
        found = read_rows(place.spark, place.layout, place.schemas, spans, self._finish, threads)
        return {
            game: one if isinstance(one, DemuxError) else replace(one, span=spans[game]) for game, one in found.items()
        }

    def _finish(self, game: str) -> None:
        """Decode the rows that the game has still to read."""
        place = self._place
        for end in decode_of(place, place.settings.run.engine)((_task(game),)):
            if end.error is not None:
                raise end.error

    def _ended(self, chunk: BackfillChunk, end: TaskEnd[Redecoded]) -> tuple[Day, ...]:
        if end.report is not None:
            return complete_days(chunk, end.report.counts, end.seconds)
        assert end.error is not None
        self._failed[chunk.game] = end.error
        return _failed(chunk.days, end.error)

    def _refuse_retired(self) -> None:
        """Leave out the games that lack rows of the range in bronze, before anything of them is done."""
        place = self._place
        games = {day.game for day in self._backfill.days}
        for game, error in sorted(retired_rows(place.spark, place.layout, games, self._backfill.asked.span).items()):
            self._failed[game] = error
            self._record(_failed([day for day in self._backfill.days if day.game == game], error))

    def _record(self, days: Collection[Day]) -> None:
        """Write the state of days to the table, and remember it."""
        record(self._place.spark, self._place.layout, self._backfill, days, _now())
        known = {(day.game, day.day): day for day in (*self._backfill.days, *days)}
        self._backfill = replace(self._backfill, days=tuple(known[key] for key in sorted(known)))

    def _tell(self) -> None:
        console.print(backfill_table(self._backfill))
        for game, error in self._failed.items():
            print_failure(f"failed: {game}: {error}")
        warn_of_undated(self._undated)
        if self._failed:
            raise typer.Exit(exit_code_of(self._failed.values()))
        if not self._backfill.is_done:
            raise typer.Exit(ExitCode.INTERRUPTED)


def print_estimate(
    spark: SparkSession | None, layout: Layout, wanted: BackfillRequest, parallelism: int, json: bool
) -> None:
    """Print how much there is to do, and about how long that takes; without a session where bronze is plain files.

    Raises:
        GameUnknown, RangeInvalid: as `Backfilling`.
    """
    found, _, undated = _days_to_do(spark, layout, wanted)
    days = [day for day in found if day.state is not DayState.DONE]
    loads = Control(spark, layout).history().loads
    rates = {game: load.seconds / load.rows for game, load in loads.items() if load.seconds is not None and load.rows}
    seconds = estimate(days, rates, parallelism)
    games = {day.game for day in days}
    rows = sum(day.rows for day in days)
    if json:
        document: BackfillEstimateJson = {
            "games": sorted(games),
            "days": len(days),
            "rows": rows,
            "seconds": seconds,
            "undated": dict(undated),
        }
        print_json(document)
        return
    about = "the duration is not known yet" if seconds is None else f"about {max(1, round(seconds)):,} s"
    console.print(
        f"{count_text(len(games), 'game')}, {count_text(len(days), 'day')}, {count_text(rows, 'row')}: {about}"
    )
    warn_of_undated(undated)
    console.print("nothing was decoded")


def print_status(spark: SparkSession | None, layout: Layout, parallelism: int, json: bool) -> None:
    """Print the newest backfills of the root; without a session where the table is reached without one."""
    found = backfills(spark, layout, _LISTED)
    if json:
        print_json({"backfills": [backfill_content(one, parallelism) for one in found]})
    else:
        console.print(backfills_table(found, parallelism) if found else "no backfill yet")


def _days_to_do(
    spark: SparkSession | None, layout: Layout, wanted: BackfillRequest
) -> tuple[tuple[Day, ...], Backfill | None, Mapping[str, int]]:
    """Return the days of a backfill, the backfill that it continues, and the rows that say of no day, by game."""
    found = _days_in_bronze(spark, layout, wanted)
    before = find_unfinished_backfill(backfills(spark, layout, 1, wanted), wanted)
    return to_do(found.days, before), before, found.undated


def _days_in_bronze(spark: SparkSession | None, layout: Layout, wanted: BackfillRequest) -> BronzeDays:
    """Return the days that bronze has of the requested games with a table."""
    if (bronze := plain_bronze(layout)) is not None:
        rows = rows_by_day_of_files(layout.storage, bronze, layout.bronze, wanted.games)
    else:
        rows = {} if spark is None else rows_by_day(spark, layout, wanted.games)
    for game in wanted.games:
        if game not in rows:
            require_game(game, games_in_bronze(spark, layout))
    decoded = [game for game in rows if layout.storage.table_exists(layout.silver(names_of(game).key))]
    if without := sorted(rows.keys() - decoded):
        warn(f"Left out, as nothing of them is decoded yet: {first_few([printable(game) for game in without])}.")
    if not decoded:
        raise RangeInvalid(
            "None of these games has a table yet: what bronze has of them is still to be decoded for the first time.",
            "Run `demux run`.",
        )
    found = BronzeDays.of({game: rows[game] for game in decoded}, wanted)
    require_found(found.days, wanted, found.span)
    return found


def warn_of_undated(undated: Mapping[str, int]) -> None:
    """Say how many rows belong to no day, and what decodes them again."""
    for game, rows in sorted(undated.items()):
        rebuild = f"demux rebuild --game {shlex.quote(game)}"
        warn(
            f"{count_text(rows, 'row')} of {printable(game)} say of no day; `{printable(rebuild)}` decodes them again."
        )


def _failed(days: Iterable[Day], error: DemuxError) -> tuple[Day, ...]:
    return mark_failed(days, error.condition, f"{error.message} {error.remedy}")


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _request() -> str:
    return f"demux-backfill/{uuid.uuid4()}"


def _task(game: str) -> Task:
    return Task(game, names_of(game).task_key, "this machine")
