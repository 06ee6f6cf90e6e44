"""What a fleet knows of each game from round to round: its table, its position, and its schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from demux.core.delta.log import file_path
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError
from demux.core.names import names_of
from demux.core.reports import GameReport, Period
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import SchemaStore
from demux.core.streaming.bronze_offset import START, BronzeOffset
from deserializer.decoders.schema_decision import UNDECIDED, Decisions, Refusal, SchemaLookup
from deserializer.fleet.worker import GameFiles
from deserializer.offsets.bronze_log import BronzeLog, require_readable
from deserializer.offsets.unread_files import CommitsByGame, FileGroup, pending, take
from deserializer.silver.backend import GameTable, QuarantineTable, Tables, find_interrupted_offset
from deserializer.silver.fit import fit, learn


@dataclass(frozen=True, slots=True)
class PendingGame:
    """What a game has to read in this round.

    Attributes:
        game: the exact name.
        table: its silver table.
        before: its offset.
        pieces: what is read; none where nothing is new.
        rows_waiting: about how many rows are left for later rounds.
        settled: ids of records that an interrupted writer has put into a table already.
    """

    game: str
    table: GameTable
    before: BronzeOffset
    pieces: tuple[FileGroup, ...]
    rows_waiting: int = 0
    settled: frozenset[str] = frozenset()

    @property
    def after(self) -> BronzeOffset:
        """The offset of the game in bronze when they are read."""
        return self.pieces[-1].after

    @property
    def bytes(self) -> int:
        """The size of the files that it reads."""
        return sum(file.bytes for piece in self.pieces for file in piece.files)


@dataclass(frozen=True, slots=True)
class GameResult:
    """How one game ended: with a report, or with an error and everything as it was.

    Attributes:
        game: the exact name.
        report: what was done.
        error: why nothing was.
        seconds: of work for this game alone.
        commit: when its table was written; None where that is not apart from the rest.
    """

    game: str
    report: GameReport | None
    error: DemuxError | None
    seconds: float = 0.0
    commit: Period | None = None


class GameStates:
    """The games of one root, as one process knows them."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        schemas: SchemaStore,
        most_rows: int,
    ) -> None:
        """Prepare, as `Fleet`."""
        self._spark = spark
        self._opened_by = tables
        self._bronze = tables.layout.bronze
        self._schemas = schemas
        self._most_rows = most_rows
        self._tables: dict[str, GameTable] = {}
        self._positions: dict[str, BronzeOffset] = {}
        self._decisions: dict[str, Decisions] = {}
        self._log = BronzeLog(spark, tables.layout.storage, self._bronze)

    def due(
        self, games: Iterable[str], quarantine: QuarantineTable, threads: int
    ) -> tuple[dict[str, PendingGame], dict[str, DemuxError]]:
        """Return what each game has to read, and why some cannot be read.

        Args:
            games: exact names.
            quarantine: the table.
            threads: that look at tables at the same time.
        """
        failed: dict[str, DemuxError] = {}
        names = sorted(set(games))
        with ThreadPoolExecutor(threads, thread_name_prefix="standing") as pool:
            for game, error in zip(names, pool.map(self._find_offset, names), strict=True):
                if error is not None:
                    failed[game] = error
        due: dict[str, PendingGame] = {}
        standing_now = [game for game in names if game not in failed]
        log = self._log.since(min((self._positions[game] for game in standing_now), default=START).version)
        for game in standing_now:
            try:
                due[game] = self._due(game, log, quarantine)
            except Exception as error:  # one game's failure must not stop its neighbours
                failed[game] = as_demux_error(error)
        return due, failed

    def work(self, due: PendingGame, paths: frozenset[str] | None = None) -> GameFiles:
        """Return the files to read, or those of these paths, and what to do with their rows."""
        files = [(file_path(self._bronze, file.path), file.bytes) for piece in due.pieces for file in piece.files]
        chosen = [(path, size) for path, size in files if paths is None or path in paths]
        return GameFiles(
            self._opened_by.layout.storage,
            due.game,
            tuple(path for path, _ in chosen),
            tuple(size for _, size in chosen),
            due.table.path,
            self.known(due.game),
            due.after.number,
            due.settled,
        )

    def learn(
        self, refs: Mapping[str, Mapping[SchemaRef, int]], due: Mapping[str, PendingGame]
    ) -> dict[str, DemuxError]:
        """Decide about further schema refs of these games; each table gets the columns that they add.

        Args:
            refs: how many rows of each game have each.
            due: the games.

        Returns:
            Why that was not possible for some games.
        """
        wanted = {game: {*self.known(game).by_ref, *more} for game, more in refs.items()}
        layout = self._opened_by.layout
        threads = layout.storage.side_by_side(layout.root)
        found = learn(self._schemas, wanted, lambda game, answers: self._fit(due[game], answers, refs[game]), threads)
        self._decisions |= {game: each for game, each in found.items() if isinstance(each, Decisions)}
        return {game: each for game, each in found.items() if isinstance(each, DemuxError)}

    def _fit(
        self, due: PendingGame, answers: Mapping[SchemaRef, SchemaLookup], rows: Mapping[SchemaRef, int]
    ) -> Decisions:
        storage, contract = self._opened_by.layout.storage, self._schemas.contract(due.game)
        return fit(self._spark, storage, due.table, answers, contract, rows)

    def schema_ids(self, due: PendingGame, refs: Iterable[SchemaRef]) -> tuple[int, ...]:
        """Return the ids that these refs stand for, sorted; makes the table where no row has asked for it."""
        if not due.table.exists:
            self._decisions[due.game] = self._fit(due, {}, {})
        return self.known(due.game).schema_ids(refs)

    def done(self, due: PendingGame) -> None:
        """Remember that the game's files are read, and which of its schemas need no further look."""
        self._positions[due.game] = due.after
        self._decisions[due.game] = lasting(self.known(due.game))

    def forget(self, game: str) -> None:
        """Read the game's table again before the next round."""
        self._tables.pop(game, None)
        self._positions.pop(game, None)
        self._decisions.pop(game, None)

    def known(self, game: str) -> Decisions:
        """Return what was decided about the game's schemas so far."""
        return self._decisions.get(game, UNDECIDED)

    def _find_offset(self, game: str) -> DemuxError | None:
        """Find the offset of the game in bronze, where that is not known; return why it cannot be found out."""
        if game in self._positions:
            return None
        try:
            table = self._opened_by.silver(names_of(game).key)
            self._tables[game], self._positions[game] = table, self._opened_by.position(game, table)
        except Exception as error:  # one game's failure must not stop its neighbours
            return as_demux_error(error)
        return None

    def _due(self, game: str, log: CommitsByGame | None, quarantine: QuarantineTable) -> PendingGame:
        table, position = self._tables[game], self._positions[game]
        pieces = pending(self._log.of_game(game, position) if log is None else log, game, position)
        require_readable(game, pieces)
        taken, settled = take(pieces, self._most_rows), frozenset[str]()
        bad = find_interrupted_offset(quarantine, game, position)
        if bad is not None:
            # a writer died between its two commits: at least what it had read is read again
            ends = [at for at, piece in enumerate(pieces, 1) if piece.after >= bad]
            taken = pieces[: max(len(taken), ends[0])] if ends else pieces
            settled = self._committed_ids(game, table, taken, quarantine)
        waiting = sum(piece.rows for piece in pieces[len(taken) :])
        return PendingGame(game, table, position, taken, waiting, settled)

    def _committed_ids(
        self, game: str, table: GameTable, pieces: Iterable[FileGroup], quarantine: QuarantineTable
    ) -> frozenset[str]:
        """Return the ids of the pieces' records that are in quarantine or in silver already."""
        storage = self._opened_by.layout.storage
        columns = []
        for file in (file for piece in pieces for file in piece.files):
            with storage.open(file_path(self._bronze, file.path), file.bytes) as opened:
                columns.append(pq.read_table(opened, columns=["record_id"]).column(0))
        wanted = pa.chunked_array(columns, pa.string()).unique()
        return (quarantine.ids(game) & frozenset(wanted.to_pylist())) | table.ids_among(wanted)


def lasting(decisions: Decisions) -> Decisions:
    """Return them without refusals that may pass: the schema may be registered or corrected later."""
    by_ref = {ref: each for ref, each in decisions.by_ref.items() if not _may_pass(each)}
    return decisions if len(by_ref) == len(decisions.by_ref) else replace(decisions, by_ref=by_ref)


def _may_pass(decision: object) -> bool:
    return isinstance(decision, Refusal) and decision.may_pass
