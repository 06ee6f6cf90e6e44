"""The fleet's flow: where each game stands, what it has still to read, one Spark job for all, then the commits."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from demux.errors import DemuxError, TaskFailed
from demux.failures import named
from demux.lock import TableLock, unlocked
from demux.names import names_of
from demux.reports import GameReport
from demux.schema_store import SchemaStore
from demux.storage import exists, read_text, replace_text
from demux.table_files import TableFile, remove_files
from demux.tables import Layout
from deserializer.fleet.games import Due, Games
from deserializer.fleet.job import run_job
from deserializer.fleet.quarantine import Quarantine
from deserializer.fleet.silver import fleet_id
from deserializer.fleet.work import Written

# the first finds out which schemas the rows have
_MOST_WAVES = 3


@dataclass(frozen=True, slots=True)
class Decoded:
    """How one game ended: with a report, or with an error and everything as it was.

    Attributes:
        game: the exact name.
        report: what was done.
        error: why nothing was.
        seconds: of work for this game alone.
    """

    game: str
    report: GameReport | None
    error: DemuxError | None
    seconds: float = 0.0


class Fleet:
    """Decodes many games together; keeps what it learnt of their tables from round to round.

    For tables of this machine, and one process: the root's lock sees to it.
    """

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        schemas: SchemaStore,
        finish_stream: Callable[[str], object],
        most_rows: int,
        threads: int,
        tables: TableLock = unlocked,
    ) -> None:
        """Prepare; bronze must be there.

        Args:
            spark: the session.
            layout: where the tables are, as paths of this machine.
            schemas: the schemas in use.
            finish_stream: ends the batch that a game's stream had begun; the other engine.
            most_rows: of a game in one round, about; the rest waits.
            threads: that look and commit at the same time.
            tables: keeps processes apart that write the quarantine table.
        """
        self._spark = spark
        self._app_id = fleet_id(layout.bronze)
        if fleet_of(spark, layout) != self._app_id:
            # for streams that go on from here
            replace_text(spark, layout.fleet, self._app_id)
        self._games = Games(spark, layout, schemas, finish_stream, most_rows, self._app_id)
        self._quarantine = Quarantine(layout.quarantine, self._app_id, tables)
        self._threads = threads

    def decode(
        self, games: Iterable[str], now: datetime, on_end: Callable[[Decoded], None] = lambda _: None
    ) -> tuple[Decoded, ...]:
        """Return how each game ended, by name: its rows are in silver or in quarantine, up to its share of the round.

        A second call takes what is new; after a crash anywhere, each game goes on where its own table says. One game's
        failure stops no other.

        Args:
            games: exact names.
            now: the time of decoding.
            on_end: told of each end, in order of time.
        """
        ended: list[Decoded] = []

        def end(one: Decoded) -> None:
            ended.append(one)
            on_end(one)

        self._quarantine.refresh()
        due, failed = self._games.due(games, self._quarantine, self._threads)
        for game, error in failed.items():
            end(Decoded(game, None, error))
        for one in due.values():
            if not one.pieces:
                end(Decoded(one.game, GameReport(one.game, 0, 0, 0, (), one.rows_waiting), None))
        active = {game: one for game, one in due.items() if one.pieces}
        written, bad = self._written(active, now)
        refused = self._quarantined(active, written, bad)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="commit") as pool:
            for done in pool.map(lambda game: self._commit(active[game], written[game], refused), active):
                end(done)
        return tuple(sorted(ended, key=lambda one: one.game))

    def _written(self, due: Mapping[str, Due], now: datetime) -> tuple[dict[str, list[Written]], list[TableFile]]:
        """Return what became of each game's files, by game, and the files for quarantine."""
        written: defaultdict[str, list[Written]] = defaultdict(list)
        bad: list[TableFile] = []
        works = [self._games.work(one) for one in due.values()]
        for _ in range(_MOST_WAVES):
            done, files = run_job(self._spark, works, self._quarantine.path, self._app_id, now)
            bad += files
            unknown: defaultdict[str, list[Written]] = defaultdict(list)
            for part in done:
                (unknown if part.unknown else written)[part.game].append(part)
            refs = {game: {ref for part in parts for ref in part.unknown} for game, parts in unknown.items()}
            failed = self._games.learn(refs, due)
            for game, error in failed.items():
                written[game].append(Written(game, error=error))
            works = [
                self._games.work(due[game], frozenset(path for part in parts for path in part.paths))
                for game, parts in unknown.items()
                if game not in failed
            ]
            if not works:
                break
        for work in works:
            written[work.files.game].append(Written(work.files.game, error=_unsettled(work.files.game)))
        return written, bad

    def _quarantined(
        self, due: Mapping[str, Due], written: Mapping[str, Sequence[Written]], bad: Sequence[TableFile]
    ) -> DemuxError | None:
        """Commit the bad rows of all games, those too that fail later; return why that was not possible."""
        if not bad:
            return None
        positions = {
            names_of(game).key: due[game].after
            for game, parts in written.items()
            if any(part.rows_bad for part in parts)
        }
        try:
            self._quarantine.append(bad, positions)
        except Exception as error:
            return named(error)
        return None

    def _commit(self, due: Due, parts: Sequence[Written], refused: DemuxError | None) -> Decoded:
        """Commit a game's good rows and return how it ended; on a failure nothing of it is in its table."""
        began = time.monotonic()
        files = [file for part in parts for file in part.silver]
        rows_bad = sum(part.rows_bad for part in parts)
        error = next((part.error for part in parts if part.error is not None), refused if rows_bad else None)
        ids: tuple[int, ...] = ()
        if error is None:
            try:
                ids = self._games.schema_ids(due, {ref for part in parts for ref in part.refs})
                due.table.append(files, self._app_id, due.after.number)
                self._games.done(due)
            except Exception as failure:  # one game's failure must not stop its neighbours
                error = named(failure)
        else:
            # what cannot be removed now is in no table, and VACUUM removes it
            with suppress(OSError):
                remove_files(due.table.path, [file.path for file in files])
        seconds = sum(part.seconds for part in parts) + time.monotonic() - began
        if error is not None:
            self._games.forget(due.game)
            return Decoded(due.game, None, error, seconds)
        rows_in = sum(part.rows_in for part in parts)
        report = GameReport(due.game, rows_in, rows_in - rows_bad, rows_bad, ids, due.rows_waiting)
        return Decoded(due.game, report, None, seconds)


def _unsettled(game: str) -> DemuxError:
    return TaskFailed(
        f"Rows of {game} still had unknown schemas after {_MOST_WAVES} looks.", "Run the same command again.", game=game
    )


def fleet_of(spark: SparkSession, layout: Layout) -> str | None:
    """Return the id of the transactions of the root's fleet; None where there never was one."""
    return read_text(spark, layout.fleet) if exists(spark, layout.fleet) else None
