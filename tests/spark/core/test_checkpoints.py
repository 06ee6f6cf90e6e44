"""Whether a checkpoint fits its tables, told from files made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.causes import Cause
from demux.core.errors import CheckpointLost, TableLost
from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import StreamCheckpoint, read_checkpoint, require_checkpoint
from demux.core.tables import BRONZE
from tests.support.spark.tables import bronze_row, quarantine_row, write, write_quarantine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def require(spark: SparkSession, folder: Path) -> None:
    require_checkpoint(
        spark,
        Storage(),
        f"{folder}/checkpoint",
        f"{folder}/table",
        f"{folder}/quarantine",
        "game_name = 'chess'",
        "demux rebuild it",
    )


def make_checkpoint(folder: Path, begun: int, done: int) -> None:
    for part, last in (("offsets", begun), ("commits", done)):
        (folder / "checkpoint" / part).mkdir(parents=True)
        for number in range(last + 1):
            (folder / "checkpoint" / part / str(number)).write_text("v1")
            # what Hadoop leaves beside each file
            (folder / "checkpoint" / part / f".{number}.crc").write_text("")
    (folder / "checkpoint" / "metadata").write_text(json.dumps({"id": "the query"}))


def make_table(folder: Path, *transactions: int, rows: int = 1) -> None:
    for batch in transactions:
        some = [bronze_row("chess", batch)] * rows
        write(f"{folder}/table", BRONZE, some, txn=("the query", batch))


def test_a_folder_that_is_not_there_is_no_checkpoint(spark: SparkSession, folder: Path) -> None:
    found = read_checkpoint(Storage(), f"{folder}/checkpoint")
    assert (found, found.unfinished) == (StreamCheckpoint(None, -1, -1), None)


def test_a_checkpoint_says_which_batch_was_begun_and_which_was_done(spark: SparkSession, folder: Path) -> None:
    make_checkpoint(folder, begun=11, done=10)
    found = read_checkpoint(Storage(), f"{folder}/checkpoint")
    assert (found, found.unfinished) == (StreamCheckpoint("the query", 11, 10), 11)


@pytest.mark.parametrize(("begun", "done"), [(2, 2), (2, 1), (3, 2), (9, 9)])
def test_a_checkpoint_that_is_as_far_as_its_table_is_good(
    spark: SparkSession, folder: Path, begun: int, done: int
) -> None:
    make_table(folder, 0, 1, 2)
    make_checkpoint(folder, begun, done)
    require(spark, folder)


def test_without_a_table_no_checkpoint_is_needed(spark: SparkSession, folder: Path) -> None:
    require(spark, folder)


def test_a_table_that_is_gone_is_refused_where_its_query_has_ended_a_batch(spark: SparkSession, folder: Path) -> None:
    make_checkpoint(folder, begun=0, done=0)
    with pytest.raises(TableLost) as lost:
        require(spark, folder)
    assert lost.value.message == (
        f"The table {folder}/table is gone, and the query that wrote it has its checkpoint {folder}/checkpoint."
    )
    assert lost.value.remedy == (
        "Run `demux rebuild it` to make the table again from its source, or put the table back."
    )


def test_a_table_that_the_first_batch_was_about_to_make_is_not_lost(spark: SparkSession, folder: Path) -> None:
    make_checkpoint(folder, begun=0, done=-1)
    require(spark, folder)


def test_a_table_without_rows_needs_no_checkpoint(spark: SparkSession, folder: Path) -> None:
    make_table(folder, 0, rows=0)
    require(spark, folder)


def test_a_table_with_rows_and_no_checkpoint_is_refused(spark: SparkSession, folder: Path) -> None:
    make_table(folder, 0)
    with pytest.raises(CheckpointLost) as lost:
        require(spark, folder)
    assert lost.value.message == (
        f"The table {folder}/table was written by a query whose checkpoint {folder}/checkpoint is gone."
    )
    assert lost.value.remedy == (
        "Run `demux rebuild it` to make the table again from its source, or put the checkpoint back."
    )


def test_a_table_all_of_whose_rows_are_in_quarantine_is_refused_too(spark: SparkSession, folder: Path) -> None:
    make_table(folder, 0, rows=0)
    write_quarantine(f"{folder}/quarantine", quarantine_row("go", 1, Cause.UNKNOWN_SCHEMA, 7))
    require(spark, folder)
    write_quarantine(f"{folder}/quarantine", quarantine_row("chess", 2, Cause.UNKNOWN_SCHEMA, 7))
    with pytest.raises(CheckpointLost):
        require(spark, folder)


def test_a_checkpoint_without_its_offsets_is_refused(spark: SparkSession, folder: Path) -> None:
    make_table(folder, 0)
    make_checkpoint(folder, begun=-1, done=-1)
    with pytest.raises(CheckpointLost, match="is gone"):
        require(spark, folder)


def test_a_checkpoint_that_is_older_than_its_table_is_refused(spark: SparkSession, folder: Path) -> None:
    make_table(folder, 0, 1, 2)
    make_checkpoint(folder, begun=1, done=1)
    with pytest.raises(CheckpointLost, match="is older than the table: it knows batch 1, the table has batch 2"):
        require(spark, folder)


def test_commits_of_others_after_the_querys_own_do_not_hide_it(spark: SparkSession, folder: Path) -> None:
    make_table(folder, 0, 1, 2)
    for number in range(4):
        write(f"{folder}/table", BRONZE, [bronze_row("chess", 100 + number)])
    make_checkpoint(folder, begun=0, done=0)
    with pytest.raises(CheckpointLost, match="the table has batch 2"):
        require(spark, folder)
