"""The silver source: a stream over one game's partition of bronze, and what is in a batch of it."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.names import escape_partition_value, game_key
from deserializer.decoders.arrow import INPUT


def game_stream(spark: SparkSession, bronze: str, game: str, first_version: int | None = None) -> DataFrame:
    """Return a streaming frame of the game's bronze rows, in the columns of `INPUT`.

    Args:
        spark: the session.
        bronze: the table's path.
        game: the exact name.
        first_version: the commit of bronze to begin with; None: all that is there. A query's checkpoint comes first.
    """
    begin = {} if first_version is None else {"startingVersion": str(first_version)}
    frame = (
        spark.readStream.format("delta")
        # a deletion in another game's partition must not stop this game
        .option("skipChangeCommits", "true")
        # the limit counts other games' files as well: one batch takes all that is there
        .option("maxFilesPerTrigger", "1000000")
        .option("excludeRegex", other_games(game))
        .options(**begin)
        .load(bronze)
    )
    return frame.where(F.col("game_name") == F.lit(game)).select(*(column.name for column in INPUT))


def other_games(game: str) -> str:
    """Return a Java regular expression that finds paths of files which surely are of other games.

    Delta streams push no filter down: without it every game plans every other game's files (delta-io/delta#607).
    Delta matches the path as its log has it: `names.key_folder`, or what Spark makes of a name, Hive-escaped and
    then URI-encoded; where the encoding of a character is in doubt the expression lets the file through, and the
    partition filter has the last word.
    """
    return f"^(?:game_name=(?!{_escaped(game)}/)|key=(?!{game_key(game)}/))"


def _escaped(game: str) -> str:
    """Return an expression that finds at least the folder that Spark writes the game's files to."""
    first, *inner = re.split(r"[^A-Za-z0-9_-]+", escape_partition_value(game))
    if not inner:
        return re.escape(first)
    *middle, last = inner
    # one run is enough: each further gap would multiply the time of a search by the length of a path
    longest = max(middle, key=len, default="")
    parts = [re.escape(part) for part in ((first, longest, last) if longest else (first, last))]
    return "[^/]*".join(parts)
