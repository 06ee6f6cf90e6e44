"""The quarantine table: the bad rows of all games of a round in one commit, before silver's commits.

The commit says for each game up to which position its bad rows are there. Should the process die before the game's own
commit, whoever decodes next reads these rows again and leaves out what is in a table already, whatever it decides now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from demux.core.columns.spark import spark_struct
from demux.core.delta.parquet_writer import TableFile, append_files, remove_files
from demux.core.delta.scan import table_rows
from demux.core.errors import ConcurrentChange
from demux.core.extras import deltalake
from demux.core.names import names_of
from demux.core.root.lock import TableLock
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset
from demux.core.tables import QUARANTINE
from deserializer.silver.auto_compaction import is_due, keep_up
from deserializer.silver.file_table import require_suited


class Quarantine:
    """The table, there or not yet.

    Attributes:
        path: where it is.
    """

    def __init__(self, storage: Storage, path: str, dropped: str, app_id: str, lock: TableLock) -> None:
        """Prepare.

        Args:
            storage: how both tables are reached.
            path: the table's.
            dropped: that of the table of rows that were dropped from it.
            app_id: of positions.
            lock: keeps other processes away while the table is written.
        """
        self.path = path
        self._storage = storage
        self._dropped = dropped
        self._app_id = app_id
        self._lock = lock
        self._open: deltalake.DeltaTable | None = None

    def refresh(self) -> None:
        """Read what others did to the table.

        Raises:
            TableUnsuited: its files cannot be written without Spark.
        """
        if self._open is not None:
            self._open = self._storage.catch_up(self._open, self.path)
            return
        try:
            self._open = self._storage.table(self.path)
        except deltalake.exceptions.TableNotFoundError:
            return
        require_suited(self._open, self.path)

    def position(self, key: str) -> BronzeOffset | None:
        """Return up to where the game's bad rows are in the table; None when it had none yet."""
        number = None if self._open is None else self._open.transaction_version(transaction_id(self._app_id, key))
        return None if number is None else BronzeOffset.of(number)

    def ids(self, game: str) -> frozenset[str]:
        """Return the ids of the game's records that were put here as they were decoded, also of those dropped since."""
        if self._open is None:
            return frozenset()
        dropped = self._storage.table_exists(self._dropped)
        tables = {self.path: self._open, **({self._dropped: self._storage.table(self._dropped)} if dropped else {})}
        found: set[str] = set()
        for path, table in tables.items():
            for batch in table_rows(self._storage, table, path, ["record_id", "query_id", "game_name"]):
                record_ids, queries, games = batch.columns
                mine = pc.and_(pc.equal(queries, self._app_id), pc.equal(games, game))
                found.update(record_ids.filter(mine).to_pylist())
        return frozenset(found)

    def append(self, files: Sequence[TableFile], positions: Mapping[str, BronzeOffset]) -> None:
        """Append files with bad rows, with the position of each game that has some; in one commit.

        Raises:
            ConcurrentChange: another process has put bad rows of these games here since `refresh`; nothing is done.
        """
        with self._lock(self.path):
            by_key = {names_of(game).key: position for game, position in positions.items()}
            seen = {key: self.position(key) for key in by_key}
            if self._open is None:
                self._open = self._storage.create_table(self.path, spark_struct(QUARANTINE).jsonValue())
            self._open.update_incremental()
            if any(self.position(key) != position for key, position in seen.items()):
                remove_files(self._storage, self.path, [file.path for file in files])
                raise ConcurrentChange(
                    f"Another process put bad rows of the same games into {self.path} meanwhile.",
                    "Run the same command again; nothing is lost.",
                )
            numbers = {transaction_id(self._app_id, key): position.number for key, position in by_key.items()}
            append_files(self._open, files, None, numbers)
            self._open.update_incremental()
            if is_due(self.path, self._open.version()):
                keep_up(self._storage, self._open, self.path, self._open.version(), {})
                self._open.update_incremental()


def transaction_id(app_id: str, key: str) -> str:
    """Return the id of the transactions that say up to where a game's bad rows are there."""
    return f"{app_id}/{key}"
