"""Reads from bronze's log which files each game has not read."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from demux.core.delta.bronze_games import games_in_bronze
from demux.core.delta.log import commit_name, commits_among
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import read_checkpoint
from demux.operations.maintenance.unread_files import UnreadBronze, UnreadRows, unread_in
from demux.operations.reconcile.offsets import OffsetsReader
from demux.operations.reconcile.table_snapshots import last_batches, silver_keys


def read_unread(spark: SparkSession | None, layout: Layout, offsets_of: OffsetsReader) -> UnreadBronze:
    """Return the unread files of all games; reads bronze's log from the smallest offset on.

    No other process may write below the root meanwhile, or what comes meanwhile is not in it.
    """
    if not layout.storage.table_exists(layout.bronze):
        return UnreadBronze()
    offsets = {key: offset.version for key, offset in offsets_of(silver_keys(layout)).items()}
    log = sorted(commits_among(layout.storage.names(f"{layout.bronze}/_delta_log")))
    if not log:
        return UnreadBronze()
    games = games_in_bronze(spark, layout)
    least = min((offsets.get(names_of(game).key, 0) for game in games), default=log[-1])
    texts = _texts(layout.storage, layout.bronze, [version for version in log if version >= least])
    waiting = unread_in(texts, offsets, games, log[0])
    return UnreadBronze(waiting, _read_by_games(layout, waiting, offsets, games, log[-1], log[0]))


def _read_by_games(
    layout: Layout,
    waiting: dict[str, UnreadRows],
    offsets: dict[str, int],
    games: frozenset[str],
    newest: int,
    begins: int,
) -> dict[str, int]:
    writer = read_checkpoint(layout.storage, layout.bronze_checkpoint).query_id
    known = [game for game in games if offsets.get(names_of(game).key, -1) >= begins]
    if writer is None or not known:
        return {}
    before = {game: waiting[game].version if game in waiting else newest + 1 for game in known}
    batches = last_batches(layout.storage, layout.bronze, writer, before.values())
    return {game: batches[version] for game, version in before.items() if version in batches}


def _texts(storage: Storage, table: str, versions: list[int]) -> Iterator[tuple[int, str]]:
    for version in versions:
        yield version, storage.read_text(f"{table}/_delta_log/{commit_name(version)}")
