"""The ledger, read from the tables alone: what balances, and what does not. Writes nothing, takes no lock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from demux.core.errors import GameUnknown
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from demux.core.text import first_few, printable
from demux.operations.reconcile.balance import Account, Grain, Ledger, RecordLocations, Tally, accounts, confirmed
from demux.operations.reconcile.consistent_snapshot import ConsistentSnapshot, read, register_twice
from demux.operations.reconcile.duckdb_engine import (
    Engine,
    counting_engine,
    register,
    register_silver,
    tallies_of,
    with_examples,
)
from demux.operations.reconcile.location_sql import GAMES, PLACES_VIEWS
from demux.operations.reconcile.offsets import OffsetsReader, SourceOffsets
from demux.operations.reconcile.source_comparison import of_source
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
    """Return what balances and what does not; safe at any time, whatever else is at work.

    A difference counts that two readings find, or one, where nothing was written since.

    Args:
        games: the exact names; None: all games, and the source.

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
    return confirmed(found, _ledger(spark, layout.storage, again, games, grain))


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
        told = accounts(tallies, grain)
        notes += _of_unknown_offset(reading, bounds, told)
        if games is not None:
            notes += ("The source is compared with bronze only for all games together.",)
            return Ledger(None, told, wrong, (), notes)
        source = of_source(engine, spark, reading)
        return Ledger(source.intake, told, (*source.differences, *wrong), source.holes, (*source.notes, *notes))


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
    batches = last_batches(storage, reading.bronze.path, writer, reading.offsets.values())
    offsets = {names.get(key, key): version for key, version in reading.offsets.items()}
    return {game: batches[version] for game, version in offsets.items() if version in batches}, ()


def _names(engine: Engine, games: Collection[str] | None) -> dict[str, str]:
    """Return the exact names of the games in bronze, and of those that were, by key."""
    found = games or (game for (game,) in engine.execute(GAMES).fetchall())
    return {names_of(game).key: game for game in found}


def _of_unknown_offset(
    reading: ConsistentSnapshot, bounds: Mapping[str, int], told: Sequence[Account]
) -> tuple[str, ...]:
    unknown = [
        printable(account.game)
        for account in told
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
