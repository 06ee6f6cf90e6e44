"""Rows of many games' tables replaced without Spark's writer: one Spark job writes files, the driver commits them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from demux.core.causes import RemovalReason, Stage
from demux.core.delta.bronze_games import position_id
from demux.core.delta.parquet_writer import TableFile, remove_files
from demux.core.error_mapping import named
from demux.core.errors import DemuxError, TaskInterrupted
from demux.core.root.layout import Layout
from demux.core.root.lock import TableLock
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.streaming.bronze_offset import BronzeOffset
from deserializer.decoders.schema_decision import UNDECIDED, Decisions, SchemaLookup
from deserializer.fleet.days import Span
from deserializer.fleet.game_state import lasting
from deserializer.fleet.replaced_rows import ReplacedRows
from deserializer.fleet.spark_job import run_job
from deserializer.fleet.waves import RefsByGame, error_of, write_in_waves
from deserializer.fleet.worker import GameFiles, WrittenGame
from deserializer.offsets.logged_files import LoggedFile, files_of_table
from deserializer.redecode.rebuilt_table import RebuiltTable, rebuilt_table
from deserializer.redecode.source import BronzeRows, Redecoded, records_by_game
from deserializer.silver.file_quarantine import Quarantine
from deserializer.silver.file_table import SilverTable
from deserializer.silver.fit import fit, learn

BronzeFiles = Mapping[str | None, Sequence[LoggedFile]]


@dataclass(slots=True)
class _ReplacedGame:
    """A game's table as it is now, and what is known of its rows.

    Attributes:
        source: its rows of bronze.
        work: what a task does with them.
        table: its silver table.
        decisions: what is decided about their schemas.
        rebuilt: the table as it is to be, where all rows are replaced.
    """

    source: BronzeRows
    work: GameFiles
    table: SilverTable
    decisions: Decisions = UNDECIDED
    rebuilt: RebuiltTable | None = None


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """Replaces rows of the tables of one root; for one process, which holds the root's lock.

    Attributes:
        spark: the session.
        layout: where the tables are.
        schemas: the schemas in use.
        lock: held around each write of the quarantine table.
        threads: that look and commit at the same time.
        request: an id that no other call has.
        learnt: what calls before have decided about the schemas of games.
    """

    spark: SparkSession
    layout: Layout
    schemas: SchemaStore
    lock: TableLock
    threads: int
    request: str
    learnt: dict[str, Decisions]
    _games: dict[str, _ReplacedGame] = field(default_factory=dict)

    def replace(
        self, sources: Collection[tuple[BronzeRows, SilverTable]], files: BronzeFiles, *, accept_loss: bool
    ) -> dict[str, Redecoded | DemuxError]:
        """Return what became of the rows of each game, or why nothing was written.

        Args:
            sources: the rows of each game, and its table.
            files: bronze's, by game.
            accept_loss: also where bronze lacks records of the tables.
        """
        if not sources:
            return {}
        storage, layout = self.layout.storage, self.layout
        spans = {one.game: one.span for one, _ in sources}
        all_rows = dict.fromkeys(spans)
        quarantined = records_by_game(storage, layout.quarantine, "stage", Stage.SILVER.value, spans)
        forgotten = records_by_game(storage, layout.removed, "reason", RemovalReason.FORGOTTEN.value, all_rows)
        for source, table in sources:
            game, mine = source.game, files.get(source.game, ())
            read = [one for one in mine if _may_have(one, source.span) and one.name not in source.unread]
            work = GameFiles(
                storage,
                game,
                tuple(one.where for one in read),
                tuple(one.bytes for one in read),
                table.path,
                UNDECIDED,
                source.version,
                frozenset(forgotten.get(game, ())),
                ReplacedRows(source.span, {}, quarantined.get(game, {}), accept_loss),
            )
            known = self.learnt.get(game, UNDECIDED)
            # a table may have other columns by now, and all rows may ask for others
            fits = source.span is not None and known.columns == table.columns
            self._games[game] = _ReplacedGame(source, work, table, known if fits else UNDECIDED)
        written, bad = self._written(datetime.now(timezone.utc))
        if bad:
            Quarantine(storage, layout.quarantine, layout.dropped, self.request, self.lock).append(bad, {})
        with ThreadPoolExecutor(self.threads, thread_name_prefix="commit") as pool:
            return dict(zip(written, pool.map(self._committed, written, written.values()), strict=True))

    def _written(self, now: datetime) -> tuple[dict[str, list[WrittenGame]], list[TableFile]]:
        works = [self._work(game) for game in self._games]
        storage, quarantine = self.layout.storage, self.layout.quarantine
        return write_in_waves(
            storage,
            works,
            lambda each: run_job(self.spark, storage, each, quarantine, self.request, now),
            lambda game: self._games[game].decisions,
            self._learn,
            # the first look has found that bronze has all records of the days
            lambda game, _: self._work(game, is_whole=True),
        )

    def _work(self, game: str, *, is_whole: bool = False) -> GameFiles:
        """Return what a task does, with the table as it is now."""
        one = self._games[game]
        assert one.work.replaces is not None
        table = one.table.opened
        logged = [] if table is None else files_of_table(table, one.table.path, "_timestamp")[None]
        replaces = replace(
            one.work.replaces,
            files={file.path: file.bytes for file in logged if _may_have(file, one.source.span)},
            may_lose=is_whole or one.work.replaces.may_lose,
        )
        return replace(one.work, decisions=one.decisions, replaces=replaces)

    def _learn(self, refs: RefsByGame) -> dict[str, DemuxError]:
        wanted = {game: {*self._games[game].decisions.by_ref, *more} for game, more in refs.items()}
        found = learn(self.schemas, wanted, lambda game, answers: self._decided(game, answers, refs[game]))
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

    def _committed(self, game: str, parts: Sequence[WrittenGame]) -> Redecoded | DemuxError:
        """Replace the rows of a game by what was written; return why that was not possible."""
        one, files = self._games[game], [file for part in parts for file in part.silver]
        error = error_of(parts)
        try:
            if error is not None:
                raise error
            (part,) = parts
            if part.days or one.source.span is None:
                self._commit(one, part)
            self.learnt[game] = lasting(one.decisions)
            return Redecoded(part.days, one.decisions.schema_ids(part.refs))
        except Exception as failure:  # one game's failure must not stop its neighbours
            if error is not None or isinstance(failure, TaskInterrupted):
                # what cannot be removed now is in no table, and VACUUM removes it
                with suppress(OSError, DemuxError):
                    remove_files(self.layout.storage, one.table.path, [file.path for file in files])
            return named(failure)

    def _commit(self, one: _ReplacedGame, written: WrittenGame) -> None:
        if one.source.span is not None:
            one.table.replace(written.removed, written.silver, None, {})
            return
        assert one.rebuilt is not None, "bronze has rows of the game"
        one.table.create_as(one.rebuilt.schema.jsonValue(), one.rebuilt.comment)
        after = {position_id(self.spark, self.layout): BronzeOffset(one.source.version + 1).number}
        one.table.replace(written.removed, written.silver, (one.rebuilt.schema, one.rebuilt.comment), after)


def _may_have(file: LoggedFile, span: Span | None) -> bool:
    return span is None or file.may_have(span.first, span.last)
