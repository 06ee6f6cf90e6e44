"""The ledger, read from the tables alone: what balances, and what does not. Writes nothing, takes no lock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from demux.core.errors import GameUnknown, TableUnsuited
from demux.core.extras import duckdb
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.spark.classic import SPARK_ERRORS
from demux.core.storage.files import Storage
from demux.core.text import first_few, printable
from demux.operations.reconcile.balance import (
    Account,
    Grain,
    Ledger,
    LedgerDifference,
    LedgerFault,
    OffsetHole,
    RecordLocations,
    SourceAccount,
    SourceLocations,
    Tally,
    accounts,
    intake,
    keep_confirmed,
)
from demux.operations.reconcile.consistent_snapshot import ConsistentSnapshot, read, register_twice
from demux.operations.reconcile.duckdb_engine import (
    Engine,
    counting_engine,
    register,
    register_silver,
    tallies_of,
    with_examples,
)
from demux.operations.reconcile.location_sql import (
    GAMES,
    INNER_HOLES,
    NO_SOURCE,
    NUMBERED_IN_SOURCE,
    NUMBERED_TAKEN,
    PLACES_VIEWS,
    SEEN,
    TAKEN_VIEWS,
)
from demux.operations.reconcile.offsets import OffsetsReader, Part, Range, SeenOffsets, SourceOffsets, holes
from demux.operations.reconcile.table_snapshots import last_batches

_BOUNDS = pa.schema([("game", pa.string()), ("bound", pa.int64())])


def reconcile(
    spark: SparkSession | None,
    layout: Layout,
    offsets_of: OffsetsReader,
    source_offsets: Callable[[], SourceOffsets],
    games: Collection[str] | None = None,
    grain: Grain = Grain.GAME,
) -> Ledger:
    """Return the ledger of a root; safe at any time, whatever else runs.

    A difference counts that two readings find, or one, where nothing was written since.

    Raises:
        GameUnknown: no table has a record of one of the games.
        TableUnsuited: only Spark can read one of the tables, and there is no session.
    """

    def look() -> ConsistentSnapshot:
        return read(spark, layout, offsets_of, source_offsets, games)

    reading = look()
    found = _ledger(spark, layout.storage, reading, games, grain)
    if found.balances or (again := look()) == reading:
        return found
    # bronze that is made again meanwhile is the one thing that the order of reading cannot help with
    return keep_confirmed(found, _ledger(spark, layout.storage, again, games, grain))


def _ledger(
    spark: SparkSession | None,
    storage: Storage,
    reading: ConsistentSnapshot,
    games: Collection[str] | None,
    grain: Grain,
) -> Ledger:
    with counting_engine() as engine:
        only = None if games is None else ("game_name", games)
        for name, table in (("bronze", reading.bronze), ("dropped", reading.dropped), ("removed", reading.removed)):
            register(engine, spark, name, table, only)
        register_twice(engine, spark, "quarantine", reading.quarantine, only)
        names = _names(engine, games)
        register_silver(engine, storage, spark, reading.silver, names)
        bounds, notes = _bounds(storage, reading, names)
        engine.register("bounds", pa.table([[*bounds], [*bounds.values()]], schema=_BOUNDS))
        engine.execute(PLACES_VIEWS)
        tallies = tallies_of(engine, RecordLocations, grain)
        _require_known(games, tallies)
        wrong = with_examples(engine, spark, reading.bronze, RecordLocations, tallies)
        by_game = accounts(tallies, grain)
        notes += _of_unknown_offset(reading, bounds, by_game)
        if games is not None:
            notes += ("The source is compared with bronze only for all games together.",)
            return Ledger(None, by_game, wrong, (), notes)
        source = of_source(engine, spark, reading)
        return Ledger(source.intake, by_game, (*source.differences, *wrong), source.holes, (*source.notes, *notes))


def _bounds(
    storage: Storage, reading: ConsistentSnapshot, names: Mapping[str, str]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the last batch of bronze that each game has read whole, by name, and what keeps us from knowing."""
    writer = None if reading.source_offsets is None else reading.source_offsets.writer
    if writer is None:
        return {}, (
            "The offset of bronze's stream is unknown (its checkpoint is gone, or bronze was made again just now); "
            "what is neither in silver nor in quarantine counts as waiting.",
        )
    batches = last_batches(storage, reading.bronze.address.path, writer, reading.offsets.values())
    offsets = {names.get(key, key): version for key, version in reading.offsets.items()}
    return {game: batches[version] for game, version in offsets.items() if version in batches}, ()


def _names(engine: Engine, games: Collection[str] | None) -> dict[str, str]:
    """Return the exact names of the present and former games of bronze, by key."""
    found = games or (game for (game,) in engine.execute(GAMES).fetchall())
    return {names_of(game).key: game for game in found}


def _of_unknown_offset(
    reading: ConsistentSnapshot, bounds: Mapping[str, int], by_game: Sequence[Account]
) -> tuple[str, ...]:
    unknown = [
        printable(account.game)
        for account in by_game
        if account.waiting and account.game not in bounds and names_of(account.game).key in reading.silver
    ]
    if not unknown or reading.source_offsets is None:
        return ()
    return (
        f"The offset of {first_few(sorted(set(unknown)))} is unknown (a first batch is under way, a table has no "
        "position, or bronze's log begins later); what is neither in silver nor in quarantine counts as waiting.",
    )


def _require_known(games: Collection[str] | None, tallies: Sequence[Tally]) -> None:
    unknown = sorted(set(games or ()) - {tally.game for tally in tallies if tally.game is not None})
    if unknown:
        raise GameUnknown(
            f"No table has records of {first_few([repr(printable(game)) for game in unknown])}.",
            "See `demux status` for the games; names are exact, upper and lower case included.",
            games=tuple(unknown),
        )


_MOST_RANGES = 100
_MOST_SHOWN = 20
_ENDS = pa.schema([("log", pa.string()), ("partition", pa.int32()), ("ended", pa.int64())])


@dataclass(frozen=True, slots=True)
class SourceSide:
    """The ledger between the source and bronze; fields as in `balance.Ledger`."""

    intake: SourceAccount | None
    differences: tuple[LedgerDifference, ...] = ()
    holes: tuple[OffsetHole, ...] = ()
    notes: tuple[str, ...] = ()


def of_source(engine: Engine, spark: SparkSession | None, reading: ConsistentSnapshot) -> SourceSide:
    """Return the ledger between the source and bronze, of a reading whose other tables the engine knows."""
    offsets = reading.source_offsets
    if offsets is None:
        return SourceSide(None, notes=("The source was not compared: bronze was made again meanwhile.",))
    numbered, notes = _read_table(engine, spark, reading)
    ends = [{"log": log, "partition": part, "ended": end} for (log, part), end in offsets.ends.items()]
    engine.register("ends", pa.Table.from_pylist(ends, schema=_ENDS))
    engine.execute(TAKEN_VIEWS)
    tallies = tallies_of(engine, SourceLocations)
    wrong = with_examples(engine, spark, reading.bronze, SourceLocations, tallies)
    if numbered and (short := numbered - _number(engine, NUMBERED_TAKEN)) > 0:
        wrong = (LedgerDifference(LedgerFault.NOT_TAKEN_IN, None, short, None, None), *wrong)
    if offsets.table is not None and offsets.version is None:
        notes = ("The source was not compared: bronze has not read a first version of its table whole.",)
    return SourceSide(intake(tallies, numbered), wrong, _holes(engine, offsets), notes)


def _read_table(
    engine: Engine, spark: SparkSession | None, reading: ConsistentSnapshot
) -> tuple[int | None, tuple[str, ...]]:
    """Make the source table known to the engine, an empty one where it cannot be read.

    Returns:
        How many records it has without a position, None where it cannot be read; why it cannot be read.
    """
    engine.execute(NO_SOURCE)
    if reading.source is None:
        return None, ()
    try:
        register_twice(engine, spark, "source", reading.source)
        return _number(engine, NUMBERED_IN_SOURCE), ()
    except (TableUnsuited, duckdb.InvalidInputException, *SPARK_ERRORS):
        # its log or its old files are gone
        engine.execute(NO_SOURCE)
        return None, (f"The source was not compared: version {reading.source[0].version} of it cannot be read.",)


def _number(engine: Engine, query: str) -> int:
    ((number,),) = engine.execute(query).fetchall()
    return int(number)


def _holes(engine: Engine, offsets: SourceOffsets) -> tuple[OffsetHole, ...]:
    """Return the holes in Kafka's offsets, up to bronze's offset: behind that, a batch may be half written."""
    if not offsets.ends:
        return ()
    found = engine.execute(SEEN).fetchall()
    inner: defaultdict[Part, list[Range]] = defaultdict(list)
    if any(last - first + 1 > offsets for _, _, first, last, offsets in found):
        for log, partition, first, end in engine.execute(INNER_HOLES, {"most": _MOST_RANGES}).fetchall():
            inner[log, partition].append((first, end))
    seen = {
        (log, part): SeenOffsets(first, last, offsets, tuple(sorted(inner[log, part])))
        for log, part, first, last, offsets in found
    }
    return holes(seen, offsets, _MOST_SHOWN)
