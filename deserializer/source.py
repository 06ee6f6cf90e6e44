"""The silver source: a stream over one game's partition of bronze."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.names import hive_escaped
from deserializer.decode import INPUT


def game_stream(spark: SparkSession, bronze: str, game: str) -> DataFrame:
    """Return a streaming frame of the game's bronze rows: `schema_id`, `payload`, and the position."""
    frame = (
        spark.readStream.format("delta")
        # a deletion in another game's partition must not stop this game
        .option("skipChangeCommits", "true")
        # the limit counts other games' files as well: one batch takes all that is there
        .option("maxFilesPerTrigger", "1000000")
        .option("excludeRegex", other_games(game))
        .load(bronze)
    )
    return frame.where(F.col("game_name") == F.lit(game)).select(*(column.name for column in INPUT))


def other_games(game: str) -> str:
    """Return a Java regular expression that finds paths of files which surely are of other games.

    Delta streams push no filter down: without it every game plans every other game's files (delta-io/delta#607).
    Delta matches the path as its log has it, Hive-escaped and then URI-encoded; where the encoding of a character is
    in doubt the expression lets the file through, and the partition filter has the last word.
    """
    first, *inner = re.split(r"[^A-Za-z0-9_-]+", hive_escaped(game))
    if not inner:
        return f"^game_name=(?!{re.escape(first)}/)"
    *middle, last = inner
    # one run is enough: each further gap would multiply the time of a search by the length of a path
    longest = max(middle, key=len, default="")
    parts = [re.escape(part) for part in ((first, longest, last) if longest else (first, last))]
    return f"^game_name=(?!{'[^/]*'.join(parts)}/)"
