"""Rows of many games' tables replaced: one Spark job decodes them into files of the tables, then each has a commit.

The driver commits the files of a table that takes them, by which others of its files go. Of any other, Spark's writer
copies the rows into the place of those that go, and the files are removed. Where only Spark reads bronze, it copies
the rows that are wanted to files first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone

from pyspark.sql import SparkSession

from demux.core.catalog.registration import make_known
from demux.core.delta.bronze_games import position_id
from demux.core.delta.parquet_writer import TableFile, remove_files
from demux.core.error_mapping import as_demux_error
from demux.core.errors import ConcurrentChange, DemuxError
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.streaming.bronze_offset import BronzeOffset
from deserializer.decoders.schema_decision import UNDECIDED, Decisions, SchemaLookup
from deserializer.fleet.game_state import lasting
from deserializer.fleet.replaced_rows import ReplacedRows
from deserializer.fleet.spark_job import run_job
from deserializer.fleet.waves import RefsByGame, error_of, write_in_waves
from deserializer.fleet.worker import GameFiles, WrittenGame
from deserializer.offsets.days import DayCounts
from deserializer.offsets.logged_files import LoggedFile
from deserializer.redecode.rebuilt_table import RebuiltTable, rebuilt_table
from deserializer.redecode.source import (
    BronzeRows,
    Redecoded,
    forgotten_records,
    quarantined_records,
    require_whole,
    staged_bronze,
)
from deserializer.silver.backend import GameTable, QuarantineTable
from deserializer.silver.file_table import SilverReplacement, SilverTable
from deserializer.silver.fit import fit, learn
from deserializer.silver.spark_table import SilverBySpark

BronzeFiles = dict[str, list[LoggedFile]]


@dataclass(slots=True)
class _ReplacedGame:
    """A game's table as it is now, and what is known of its rows.

    Attributes:
        source: its rows of bronze.
        work: what a task does with them.
        table: its silver table; Spark writes it where one of the tables asks for it, or the game is large.
        decisions: what is decided about their schemas.
        rebuilt: the table as it is to be, where all rows are replaced.
    """

    source: BronzeRows
    work: GameFiles
    table: GameTable
    decisions: Decisions = UNDECIDED
    rebuilt: RebuiltTable | None = None


@dataclass(frozen=True, slots=True)
class BronzeReplacement:
    """Replaces rows of the tables of one root; for one process, which holds the root's lock.

    Attributes:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        quarantine: that of the root.
        threads: that look and commit at the same time.
        request: an id that no other call has.
        learnt: what calls before have decided about the schemas of games.
    """

    spark: SparkSession
    layout: Layout
    schemas: SchemaStore
    quarantine: QuarantineTable
    threads: int
    request: str
    learnt: dict[str, Decisions]
    _games: dict[str, _ReplacedGame] = field(default_factory=dict)

    def replace(
        self, sources: Collection[tuple[BronzeRows, GameTable]], files: BronzeFiles, *, accept_loss: bool
    ) -> dict[str, Redecoded | DemuxError]:
        """Return what became of the rows of each game, or why nothing was written.

        Args:
            sources: the rows of each game, and its table.
            files: bronze's, by game; not those of games whose rows are to be copied by Spark first.
            accept_loss: also where bronze lacks records of the tables.
        """
        storage, layout = self.layout.storage, self.layout
        spans = {one.game: one.span for one, table in sources if isinstance(table, SilverTable)}
        quarantined = quarantined_records(storage, layout.quarantine, spans)
        forgotten = forgotten_records(self.spark, layout, {one.game for one, _ in sources})
        failed: dict[str, DemuxError] = {}
        for source, table in sources:
            if isinstance(table, SilverBySpark) and not accept_loss:
                try:
                    require_whole(self.spark, layout, source, forgotten.get(source.game, ()))
                except Exception as error:  # one game's failure must not stop its neighbours
                    failed[source.game] = as_demux_error(error)
        whole = [(source, table) for source, table in sources if source.game not in failed]
        with staged_bronze(self.spark, layout, [one for one, _ in whole if one.game not in files]) as staged:
            for source, table in whole:
                self._add(source, table, (files | staged)[source.game], quarantined, forgotten, accept_loss=accept_loss)
            written, bad = self._written(datetime.now(timezone.utc))
        if bad:
            self.quarantine.append(bad, {})
        with ThreadPoolExecutor(self.threads, thread_name_prefix="commit") as pool:
            return {
                **failed,
                **dict(zip(written, pool.map(self._replace_rows, written, written.values()), strict=True)),
            }

    def _add(
        self,
        source: BronzeRows,
        table: GameTable,
        files: Sequence[LoggedFile],
        quarantined: Mapping[str, Mapping[str, date | None]],
        forgotten: Mapping[str, frozenset[str]],
        *,
        accept_loss: bool,
    ) -> None:
        game = source.game
        read = [one for one in files if one.may_have(source.span) and one.name not in source.unread]
        # of a table that Spark writes the records were compared before
        may_lose = accept_loss or isinstance(table, SilverBySpark)
        work = GameFiles(
            self.layout.storage,
            game,
            tuple(one.where for one in read),
            tuple(one.bytes for one in read),
            table.path,
            UNDECIDED,
            source.version,
            forgotten.get(game, frozenset()),
            ReplacedRows(source.span, {}, quarantined.get(game, {}), may_lose),
        )
        known = self.learnt.get(game, UNDECIDED)
        # a table may have other columns by now, and all rows may ask for others
        fits = source.span is not None and known.columns == table.columns
        self._games[game] = _ReplacedGame(source, work, table, known if fits else UNDECIDED)

    def _written(self, now: datetime) -> tuple[dict[str, list[WrittenGame]], list[TableFile]]:
        works = [self._work(game) for game in self._games]
        if not works:
            return {}, []
        storage, quarantine = self.layout.storage, self.layout.quarantine
        return write_in_waves(
            storage,
            works,
            lambda each: run_job(self.spark, storage, each, quarantine, self.request, now),
            lambda game: self._games[game].decisions,
            self._learn,
            # the first look has found that bronze has all records of the days
            self._work,
        )

    def _work(self, game: str, paths: frozenset[str] | None = None) -> GameFiles:
        """Return what a task does, with all files or those of these paths, and the table as it is now."""
        one = self._games[game]
        assert one.work.replaces is not None
        replaces = replace(
            one.work.replaces,
            files=one.table.files_of(one.source.span),
            may_lose=paths is not None or one.work.replaces.may_lose,
        )
        files = zip(one.work.paths, one.work.sizes, strict=True)
        chosen = [(path, size) for path, size in files if paths is None or path in paths]
        return replace(
            one.work,
            paths=tuple(path for path, _ in chosen),
            sizes=tuple(size for _, size in chosen),
            decisions=one.decisions,
            replaces=replaces,
        )

    def _learn(self, refs: RefsByGame) -> dict[str, DemuxError]:
        wanted = {game: {*self._games[game].decisions.by_ref, *more} for game, more in refs.items()}
        threads = self.layout.storage.side_by_side(self.layout.root)
        found = learn(self.schemas, wanted, lambda game, answers: self._decided(game, answers, refs[game]), threads)
        for game, each in found.items():
            if isinstance(each, Decisions):
                self._games[game].decisions = each
        return {game: each for game, each in found.items() if isinstance(each, DemuxError)}

    def _decided(
        self, game: str, answers: Mapping[SchemaRef, SchemaLookup], rows: Mapping[SchemaRef, int]
    ) -> Decisions:
        """Decide about the schemas of a game; the table of one whose days are replaced gets the columns for it."""
        one, contract = self._games[game], self.schemas.contract(game)
        if one.source.span is not None:
            return fit(self.spark, self.layout.storage, one.table, answers, contract, rows)
        one.rebuilt = rebuilt_table(one.table.schema, answers, contract, rows)
        return one.rebuilt.decisions

    def _replace_rows(self, game: str, parts: Sequence[WrittenGame]) -> Redecoded | DemuxError:
        """Replace the rows of a game by what was written; return why that was not possible."""
        one, files = self._games[game], [file for part in parts for file in part.silver]
        error = error_of(parts)
        try:
            if error is not None:
                raise error
            days = _days_of(parts)
            if days or one.source.span is None:
                self._commit(one, [path for part in parts for path in part.removed], files)
            self.learnt[game] = lasting(one.decisions)
            return Redecoded(days, one.decisions.schema_ids({ref for part in parts for ref in part.refs}))
        except Exception as failure:  # one game's failure must not stop its neighbours
            if error is not None or isinstance(failure, ConcurrentChange):
                # what cannot be removed now is in no table, and VACUUM removes it
                with suppress(OSError, DemuxError):
                    remove_files(self.layout.storage, one.table.path, [file.path for file in files])
            return as_demux_error(failure)

    def _commit(self, one: _ReplacedGame, removed: Sequence[str], files: Sequence[TableFile]) -> None:
        span = one.source.span
        if span is not None:
            one.table.replace(SilverReplacement(removed, span.sql("_timestamp"), files))
            return
        assert one.rebuilt is not None, "bronze has rows of the game"
        rebuilt = one.rebuilt.schema, one.rebuilt.comment
        after = {position_id(self.spark, self.layout): BronzeOffset(one.source.version + 1).number}
        if isinstance(one.table, SilverTable):
            one.table.create_as(rebuilt[0].jsonValue(), rebuilt[1])
            make_known(self.spark, self.layout.storage.address(one.table.path))
        one.table.replace(SilverReplacement(removed, None, files, rebuilt, after))


def _days_of(parts: Sequence[WrittenGame]) -> dict[date, DayCounts]:
    days: dict[date, DayCounts] = {}
    for part in parts:
        days |= {day: days.get(day, DayCounts()) + counts for day, counts in part.days.items()}
    return days
