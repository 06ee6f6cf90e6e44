"""What a Delta table's log says without reading the table: its version, and which partitions grew since another one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from demux.storage import file_names, read_text

_COMMIT = re.compile(r"(\d{20})\.json")
# the query writes every batch to its table: more commits in between would be somebody else's
_COMMITS_LOOKED_AT = 10


@dataclass(frozen=True, slots=True)
class Growth:
    """What came to a partitioned table after a version.

    Attributes:
        version: the table's version now.
        partitions: values of the partition column whose partitions got files; None when the log does not reach back.
    """

    version: int
    partitions: frozenset[str] | None


def growth(spark: SparkSession, table: str, column: str, since: int) -> Growth:
    """Return which partitions got rows in the commits after version `since` (-1: in all commits).

    Reads one small file for each commit after `since`, no data and no checkpoint.
    """
    commits = _commits(spark, table)
    latest = max(commits, default=-1)
    wanted = range(since + 1, latest + 1)
    # a table that was made anew counts from 0 again
    if since > latest or any(version not in commits for version in wanted):
        return Growth(latest, None)
    texts = (read_text(spark, f"{table}/_delta_log/{commits[version]}") for version in wanted)
    return Growth(latest, partitions_added(texts, column))


def partitions_added(commits: Iterable[str], column: str) -> frozenset[str]:
    """Return the partition values that the commits add rows to.

    Args:
        commits: texts of commit files, one JSON action on each line.
        column: the partition column.
    """
    values: set[str] = set()
    for text in commits:
        for line in _lines(text):
            added = json.loads(line).get("add") if line.startswith('{"add"') else None
            # a rewrite (OPTIMIZE) moves rows that were there before
            if added and added.get("dataChange", True):
                value = added["partitionValues"].get(column)
                if value is not None:
                    values.add(value)
    return frozenset(values)


def newest_transaction(spark: SparkSession, table: str, app_id: str) -> int | None:
    """Return the application's newest transaction version in the table's newest commits, None if none."""
    commits = _commits(spark, table)
    for version in sorted(commits, reverse=True)[:_COMMITS_LOOKED_AT]:
        found = transaction_in(read_text(spark, f"{table}/_delta_log/{commits[version]}"), app_id)
        if found is not None:
            return found
    return None


def transaction_in(commit: str, app_id: str) -> int | None:
    """Return the application's transaction version in a commit file's text, if it has one."""
    for line in _lines(commit):
        transaction = json.loads(line).get("txn") if line.startswith('{"txn"') else None
        if transaction and transaction["appId"] == app_id:
            return int(transaction["version"])
    return None


def _lines(commit: str) -> list[str]:
    # not splitlines: JSON lets a line separator of Unicode stand inside a text
    return commit.split("\n")


def _commits(spark: SparkSession, table: str) -> dict[int, str]:
    names = file_names(spark, f"{table}/_delta_log")
    return {int(found[1]): name for name in names if (found := _COMMIT.fullmatch(name))}
