"""What a table's log says, read by Spark's file system from tables that other writers made."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from demux.core.delta.log import growth, newest_transaction
from demux.core.storage.files import Storage
from demux.core.tables import BRONZE
from tests.support.spark.tables import bronze_row, write, write_bronze

HOSTILE = ["../../etc", "a'b; drop table x", "Chess", "chess", "`${x}`", "象棋", "a=b/c%2F", "x" * 80]


@pytest.fixture
def bronze(tmp_path: Path) -> str:
    return str(tmp_path / "bronze")


def grown(spark: SparkSession, bronze: str, since: int) -> tuple[int, frozenset[str] | None]:
    found = growth(Storage(), bronze, "game_name", since)
    return found.version, found.partitions


def test_a_table_that_is_not_there_has_not_grown(spark: SparkSession, bronze: str) -> None:
    assert grown(spark, bronze, -1) == (-1, frozenset())


def test_partitions_that_got_rows_since_a_version_are_found(spark: SparkSession, bronze: str) -> None:
    write_bronze(bronze, bronze_row("chess", 0), bronze_row("go", 1))
    write_bronze(bronze, bronze_row("go", 2))
    assert grown(spark, bronze, -1) == (1, frozenset({"chess", "go"}))
    assert grown(spark, bronze, 0) == (1, frozenset({"go"}))
    assert grown(spark, bronze, 1) == (1, frozenset())


def test_names_of_games_are_found_exactly_whatever_they_are(spark: SparkSession, bronze: str) -> None:
    write_bronze(bronze, *(bronze_row(name, offset) for offset, name in enumerate(HOSTILE)))
    assert grown(spark, bronze, -1)[1] == frozenset(HOSTILE)
    # the same by Spark's own writer
    frame = spark.createDataFrame([(name, 1) for name in HOSTILE], "game_name string, schema_id int")
    frame.write.format("delta").mode("append").save(bronze)
    assert grown(spark, bronze, 0) == (1, frozenset(HOSTILE))


def test_a_rewrite_of_files_and_a_deletion_are_no_growth(spark: SparkSession, bronze: str) -> None:
    for offset in range(3):
        write_bronze(bronze, bronze_row("chess", offset), bronze_row("go", 10 + offset))
    table = DeltaTable(bronze)
    table.optimize.compact()
    table.delete("game_name = 'go'")
    assert grown(spark, bronze, 2) == (4, frozenset())


def test_a_log_that_does_not_reach_back_says_so(spark: SparkSession, bronze: str) -> None:
    for offset in range(3):
        write_bronze(bronze, bronze_row("chess", offset))
    DeltaTable(bronze).create_checkpoint()
    (Path(bronze) / "_delta_log" / f"{1:020}.json").unlink()
    assert grown(spark, bronze, 0) == (2, None)
    assert grown(spark, bronze, 1) == (2, frozenset({"chess"}))


def test_a_table_that_was_made_anew_since_is_looked_at_as_a_whole(spark: SparkSession, bronze: str) -> None:
    write_bronze(bronze, bronze_row("chess", 0))
    assert grown(spark, bronze, 7) == (0, None)


def test_the_newest_transaction_of_an_application_is_found_among_those_of_others(
    spark: SparkSession, bronze: str
) -> None:
    assert newest_transaction(Storage(), bronze, "mine") is None
    for batch in range(3):
        write(bronze, BRONZE, [bronze_row("chess", batch)], txn=("mine", batch))
        write(bronze, BRONZE, [bronze_row("chess", batch)], txn=("other", 100 + batch))
    assert newest_transaction(Storage(), bronze, "mine") == 2
    assert newest_transaction(Storage(), bronze, "other") == 102
    assert newest_transaction(Storage(), bronze, "nobody") is None
