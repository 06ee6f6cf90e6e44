"""Bronze's log as a fleet reads it: each commit once in the life of a process."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table
from demux.core.delta.log import AddedFile, Commit, growth
from demux.core.errors import BronzeLogTruncated, BronzeRewritten
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import START, BronzeOffset
from deserializer.offsets.unread_files import CommitsByGame, FileGroup

# older ones are read again when they are wanted
_KEPT = 5_000
_URI = re.compile(r"([a-z][a-z0-9+.-]*:(?://[^/]*)?)(/.*)")


class BronzeLog:
    """The commits of bronze, wherever it is."""

    def __init__(self, spark: SparkSession, storage: Storage, bronze: str) -> None:
        """Prepare for the table at this path."""
        self._spark = spark
        self._storage = storage
        self._bronze = bronze
        self._commits: tuple[Commit, ...] = ()

    def since(self, version: int) -> CommitsByGame | None:
        """Return the commits from this version on; None when the log does not reach back so far."""
        first = self._commits[0].version if self._commits else None
        if first is None or version < first:
            found = growth(self._storage, self._bronze, "game_name", version - 1).commits
            if found is None:
                return None
            self._commits = found
        else:
            new = growth(self._storage, self._bronze, "game_name", self._commits[-1].version).commits
            if new is None:
                # it was made again
                self._commits = ()
                return self.since(version)
            self._commits = (*self._commits, *new)
        wanted = CommitsByGame(commit for commit in self._commits if commit.version >= version)
        self._commits = self._commits[-_KEPT:]
        return wanted

    def of_game(self, game: str, position: BronzeOffset) -> CommitsByGame:
        """Return the commits from the position on, where the log does not reach back to every game's.

        Raises:
            BronzeLogTruncated: it does not reach back to this game's.
        """
        found = growth(self._storage, self._bronze, "game_name", position.version - 1)
        if found.commits is not None:
            return CommitsByGame(found.commits)
        if position == START:
            return CommitsByGame([self._snapshot(game, found.version)])
        raise BronzeLogTruncated(
            f"The game's offset is before commit {position.version} of bronze, and bronze's log begins later.",
            f"Make its table again from bronze: `demux rebuild --game {shlex.quote(game)}`.",
            game=game,
            version=position.version,
        )

    def _snapshot(self, game: str, version: int) -> Commit:
        """Return all files that the game has in a version of bronze, as one commit."""
        bronze = read_table(self._spark, self._storage.address(self._bronze), versionAsOf=version)
        paths = sorted(_path(self._storage, one) for one in bronze.where(F.col("game_name") == game).inputFiles())
        files = (AddedFile(path, game, self._storage.size(path) or 0, None) for path in paths)
        return Commit(version, tuple(files), at_once=True)


def _path(storage: Storage, logged_path: str) -> str:
    """Return the path of a file that Spark tells of, with what a path on this machine does not need left out."""
    found = _URI.fullmatch(logged_path)
    begin, path = (found[1], found[2]) if found else ("", logged_path)
    begin = "" if begin.startswith("file:") else begin
    # the path or its URI, as it is with this Delta; no two files have the same name
    return f"{begin}{path}" if storage.exists(f"{begin}{path}") else f"{begin}{unquote(path)}"


def require_readable(game: str, pieces: Iterable[FileGroup]) -> None:
    """Check that rows which were deleted before they were read are not in the files any more.

    Raises:
        BronzeRewritten: they are.
    """
    cut = [file.path for piece in pieces for file in piece.files if not file.whole]
    if cut:
        raise BronzeRewritten(
            f"Rows were deleted from {len(cut)} files of bronze before they were read, and left in the files.",
            f"Make the game's table again from bronze: `demux rebuild --game {shlex.quote(game)}`.",
            paths=tuple(cut),
        )
