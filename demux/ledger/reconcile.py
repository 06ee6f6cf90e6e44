"""The ledger, read from the tables alone: what balances, and what does not. Writes nothing, takes no lock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.errors import GameUnknown
from demux.ledger import counting
from demux.ledger.account import Account, Grain, Ledger, Tally, accounts, confirmed
from demux.ledger.counting import PLACES
from demux.ledger.reading import Reading, read, twice
from demux.ledger.snapshots import last_batches, silver_rows, together
from demux.ledger.source import of_source
from demux.ledger.standing import SourceStand, Stands
from demux.ledger.tallies import tallies_of_games, with_examples
from demux.names import names_of
from demux.tables import Layout
from demux.text import first_few, printable


def reconcile(
    spark: SparkSession,
    layout: Layout,
    stands: Stands,
    source_stand: Callable[[], SourceStand],
    games: Collection[str] | None = None,
    grain: Grain = Grain.GAME,
) -> Ledger:
    """Return what balances and what does not; safe at any time, whatever else is at work.

    A difference counts that two readings find, or one, where nothing was written since.

    Args:
        spark: the session.
        layout: where the tables are.
        stands: says where games stand, by key.
        source_stand: says where bronze stands in its source.
        games: the exact names; None: all games, and the source.
        grain: what there is an account of.

    Raises:
        GameUnknown: no table has a record of one of the games.
    """

    def look() -> Reading:
        return read(spark, layout, stands, source_stand, games)

    reading = look()
    found = _ledger(spark, reading, games, grain)
    if found.balances or (again := look()) == reading:
        return found
    # bronze that is made again meanwhile is the one thing that the order of reading cannot help with
    return confirmed(found, _ledger(spark, again, games, grain))


def _ledger(spark: SparkSession, reading: Reading, games: Collection[str] | None, grain: Grain) -> Ledger:
    names = _names(spark, reading, games)
    bounds, notes = _bounds(spark, reading, names)
    records = counting.places(_placed(spark, reading, names, bounds, games))
    tallies = tallies_of_games(records, grain)
    _require_known(games, tallies)
    wrong = with_examples(spark, reading, records, tallies, PLACES)
    told = accounts(tallies, grain)
    notes += _of_unknown_stand(reading, bounds, told)
    if games is not None:
        notes += ("The source is compared with bronze only for all games together.",)
        return Ledger(None, told, wrong, (), notes)
    source = of_source(spark, reading)
    return Ledger(source.intake, told, (*source.differences, *wrong), source.holes, (*source.notes, *notes))


def _names(spark: SparkSession, reading: Reading, games: Collection[str] | None) -> dict[str, str]:
    """Return the exact names of the games in bronze, and of those that were, by key."""
    if games is None:
        parts = [reading.bronze_rows(spark).select("game_name")]
        if reading.removed.version >= 0:
            parts.append(reading.removed_rows(spark).select("game_name").where("game_name IS NOT NULL"))
        games = [row.game_name for row in together(parts).distinct().collect()]
    return {names_of(game).key: game for game in games}


def _bounds(spark: SparkSession, reading: Reading, names: Mapping[str, str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the last batch of bronze that each game has read whole, by name, and what keeps us from knowing."""
    writer = None if reading.source_stand is None else reading.source_stand.writer
    if writer is None:
        return {}, (
            "Nobody knows where bronze's stream stands (its checkpoint is gone, or bronze was made again just now); "
            "what is neither in silver nor in quarantine counts as waiting.",
        )
    batches = last_batches(spark, reading.bronze.path, writer, reading.stood.values())
    stood = {names.get(key, key): version for key, version in reading.stood.items()}
    return {game: batches[version] for game, version in stood.items() if version in batches}, ()


def _of_unknown_stand(reading: Reading, bounds: Mapping[str, int], told: Sequence[Account]) -> tuple[str, ...]:
    unknown = [
        printable(account.game)
        for account in told
        if account.waiting and account.game not in bounds and names_of(account.game).key in reading.silver
    ]
    if not unknown or reading.source_stand is None:
        return ()
    return (
        f"Nobody knows where {first_few(sorted(set(unknown)))} stand (a first batch is under way, a checkpoint is "
        "gone, or bronze's log begins later); what is neither in silver nor in quarantine counts as waiting.",
    )


def _placed(
    spark: SparkSession,
    reading: Reading,
    names: Mapping[str, str],
    bounds: Mapping[str, int],
    games: Collection[str] | None,
) -> DataFrame:
    known = spark.createDataFrame(list(bounds.items()), "game string, bound long")
    bronze = _of_games(reading.bronze_rows(spark), games)
    parts = [
        counting.of_bronze(bronze, known),
        counting.of_silver(silver_rows(spark, reading.silver, names)),
    ]
    for frame, which in twice(spark, reading.quarantine):
        parts.append(counting.of_quarantine(_of_games(frame, games), which))
    if reading.dropped.version >= 0:
        parts.append(counting.of_dropped(_of_games(reading.dropped_rows(spark), games)))
    if reading.removed.version >= 0:
        parts.append(counting.of_retired(_of_games(reading.retired_rows(spark), games)))
        parts.append(counting.of_forgotten(_of_games(reading.removed_rows(spark), games)))
    return together(parts)


def _of_games(rows: DataFrame, games: Collection[str] | None) -> DataFrame:
    return rows if games is None else rows.where(F.col("game_name").isin(sorted(games)))


def _require_known(games: Collection[str] | None, tallies: Sequence[Tally]) -> None:
    unknown = sorted(set(games or ()) - {tally.game for tally in tallies if tally.game is not None})
    if unknown:
        raise GameUnknown(
            f"No table has records of {first_few([repr(printable(game)) for game in unknown])}.",
            "See `demux status` for the games; names are exact, upper and lower case included.",
            games=tuple(unknown),
        )
