"""A batch into two tables: once, however often it comes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED, BatchCounts, Target, commit
from demux.core.storage.table_address import TableAddress
from tests.support.spark.tables import read


@dataclass(frozen=True, slots=True)
class Folder:
    """Two tables, and batches of records that are good when their number is not in `bad`."""

    spark: SparkSession
    path: Path

    def commit(self, batch: Batch, numbers: range, bad: set[int]) -> BatchCounts:
        frame = self.spark.range(numbers.start, numbers.stop, 1, 2)
        refused = F.col("number").isin(*bad) if bad else F.lit(False)
        records = frame.select(F.col("id").alias("number"), F.concat(F.lit("r"), "id").alias("record_id"))
        rows = records.withColumn(REFUSED, refused)
        table, quarantine = TableAddress(f"{self.path}/table"), TableAddress(f"{self.path}/quarantine")
        target = Target(table, quarantine, partition_by=("record_id",))
        return commit(batch, target, rows, lambda: quarantined(records.where(refused)))

    def good(self) -> list[int]:
        return [number for (number,) in read(f"{self.path}/table", "number")]

    def bad(self) -> list[tuple[int, str, str]]:
        return [(n, c, s) for n, c, s in read(f"{self.path}/quarantine", "number", "cause", "sentence")]


def quarantined(records: DataFrame) -> DataFrame:
    return records.withColumn("cause", F.lit("MALFORMED_WRAPPER")).withColumn("sentence", F.lit("Bad."))


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path)


def again(batch: Batch) -> Batch:
    return Batch(batch.query_id, batch.batch_id, retried=True)


FIRST, SECOND = Batch("q", 0, retried=False), Batch("q", 1, retried=False)


def test_good_rows_go_to_the_table_and_bad_ones_to_quarantine(folder: Folder) -> None:
    assert folder.commit(FIRST, range(6), {1, 4}) == BatchCounts(6, 4, 2)
    assert folder.good() == [0, 2, 3, 5]
    assert folder.bad() == [(1, "MALFORMED_WRAPPER", "Bad."), (4, "MALFORMED_WRAPPER", "Bad.")]
    assert DeltaTable(f"{folder.path}/table").metadata().partition_columns == ["record_id"]
    assert folder.commit(SECOND, range(6, 8), set()) == BatchCounts(2, 2, 0)
    assert folder.good() == [0, 2, 3, 5, 6, 7]


def test_a_batch_that_comes_again_writes_nothing_and_counts_the_same(folder: Folder) -> None:
    first = folder.commit(FIRST, range(6), {1, 4})
    assert folder.commit(again(FIRST), range(6), {1, 4}) == first
    assert (folder.good(), [number for number, _, _ in folder.bad()]) == ([0, 2, 3, 5], [1, 4])


def test_a_batch_without_bad_rows_makes_no_quarantine(folder: Folder) -> None:
    assert folder.commit(FIRST, range(3), set()) == BatchCounts(3, 3, 0)
    assert not (folder.path / "quarantine").exists()


def test_a_batch_without_good_rows_makes_an_empty_table(folder: Folder) -> None:
    assert folder.commit(FIRST, range(3), {0, 1, 2}) == BatchCounts(3, 0, 3)
    assert (folder.good(), len(folder.bad())) == ([], 3)
    assert folder.commit(again(FIRST), range(3), {0, 1, 2}) == BatchCounts(3, 0, 3)
    assert (folder.good(), len(folder.bad())) == ([], 3)


def test_a_batch_without_rows_is_written_too_so_that_it_is_known(folder: Folder) -> None:
    assert folder.commit(FIRST, range(0), set()) == BatchCounts(0, 0, 0)
    assert DeltaTable(f"{folder.path}/table").transaction_version("q") == 0


def test_a_retry_with_nothing_written_before_writes_everything(folder: Folder) -> None:
    assert folder.commit(again(FIRST), range(4), {3}) == BatchCounts(4, 3, 1)
    assert (folder.good(), folder.bad()) == ([0, 1, 2], [(3, "MALFORMED_WRAPPER", "Bad.")])


def test_a_retry_after_the_good_rows_were_written_writes_the_bad_ones(folder: Folder) -> None:
    folder.commit(FIRST, range(6), {1, 4})
    # as if the process had died before it wrote to quarantine
    shutil.rmtree(folder.path / "quarantine")
    assert folder.commit(again(FIRST), range(6), {1, 4}) == BatchCounts(6, 4, 2)
    assert (folder.good(), [number for number, _, _ in folder.bad()]) == ([0, 2, 3, 5], [1, 4])


def test_two_queries_do_not_take_each_others_batches_for_their_own(folder: Folder) -> None:
    folder.commit(FIRST, range(2), set())
    folder.commit(Batch("another", 0, retried=False), range(2, 4), set())
    assert folder.good() == [0, 1, 2, 3]
