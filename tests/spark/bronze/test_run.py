"""Whether bronze fits its checkpoint, by files that are made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bronze_ingest.run import require_checkpoint
from demux.core.causes import Cause, Stage
from demux.core.errors import CheckpointLost, TableLost
from demux.core.root.layout import Layout
from demux.core.tables import BRONZE
from tests.support.spark.tables import bronze_row, quarantine_row, write, write_quarantine


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path))


def make_checkpoint(layout: Layout, begun: int, done: int) -> None:
    checkpoint = Path(layout.bronze_checkpoint)
    for part, last in (("offsets", begun), ("commits", done)):
        (checkpoint / part).mkdir(parents=True)
        for number in range(last + 1):
            (checkpoint / part / str(number)).write_text("v1")
            # what Hadoop leaves beside each file
            (checkpoint / part / f".{number}.crc").write_text("")
    (checkpoint / "metadata").write_text(json.dumps({"id": "the query"}))


def make_table(layout: Layout, *transactions: int, rows: int = 1) -> None:
    for batch in transactions:
        some = [bronze_row("chess", batch)] * rows
        write(layout.bronze, BRONZE, some, txn=("the query", batch))


@pytest.mark.parametrize(("begun", "done"), [(2, 2), (2, 1), (3, 2), (9, 9)])
def test_a_checkpoint_that_is_as_far_as_its_table_is_good(
    spark: SparkSession, layout: Layout, begun: int, done: int
) -> None:
    make_table(layout, 0, 1, 2)
    make_checkpoint(layout, begun, done)
    require_checkpoint(spark, layout)


def test_without_a_table_no_checkpoint_is_needed(spark: SparkSession, layout: Layout) -> None:
    require_checkpoint(spark, layout)


def test_a_table_that_is_gone_is_refused_where_its_query_has_ended_a_batch(spark: SparkSession, layout: Layout) -> None:
    make_checkpoint(layout, begun=0, done=0)
    with pytest.raises(TableLost) as lost:
        require_checkpoint(spark, layout)
    assert lost.value.message == (
        f"The table {layout.bronze} is gone, and the query that wrote it has its checkpoint {layout.bronze_checkpoint}."
    )
    assert lost.value.remedy == (
        "Run `demux rebuild --bronze` to make the table again from its source, or put the table back."
    )


def test_a_table_that_the_first_batch_was_about_to_make_is_not_lost(spark: SparkSession, layout: Layout) -> None:
    make_checkpoint(layout, begun=0, done=-1)
    require_checkpoint(spark, layout)


def test_a_table_without_rows_needs_no_checkpoint(spark: SparkSession, layout: Layout) -> None:
    make_table(layout, 0, rows=0)
    require_checkpoint(spark, layout)


def test_a_table_with_rows_and_no_checkpoint_is_refused(spark: SparkSession, layout: Layout) -> None:
    make_table(layout, 0)
    with pytest.raises(CheckpointLost) as lost:
        require_checkpoint(spark, layout)
    assert lost.value.message == (
        f"The table {layout.bronze} was written by a query whose checkpoint {layout.bronze_checkpoint} is gone."
    )
    assert lost.value.remedy == (
        "Run `demux rebuild --bronze` to make the table again from its source, or put the checkpoint back."
    )


def test_a_table_all_of_whose_rows_are_in_quarantine_is_refused_too(spark: SparkSession, layout: Layout) -> None:
    make_table(layout, 0, rows=0)
    row = quarantine_row("go", 1, Cause.MALFORMED_WRAPPER, None)
    write_quarantine(layout.quarantine, row)
    require_checkpoint(spark, layout)
    write_quarantine(layout.quarantine, row | {"stage": Stage.BRONZE.value})
    with pytest.raises(CheckpointLost):
        require_checkpoint(spark, layout)


def test_a_checkpoint_without_its_offsets_is_refused(spark: SparkSession, layout: Layout) -> None:
    make_table(layout, 0)
    make_checkpoint(layout, begun=-1, done=-1)
    with pytest.raises(CheckpointLost, match="is gone"):
        require_checkpoint(spark, layout)


def test_a_checkpoint_that_is_older_than_its_table_is_refused(spark: SparkSession, layout: Layout) -> None:
    make_table(layout, 0, 1, 2)
    make_checkpoint(layout, begun=1, done=1)
    with pytest.raises(CheckpointLost, match="is older than the table: it knows batch 1, the table has batch 2"):
        require_checkpoint(spark, layout)


def test_commits_of_others_after_the_querys_own_do_not_hide_it(spark: SparkSession, layout: Layout) -> None:
    make_table(layout, 0, 1, 2)
    for number in range(4):
        write(layout.bronze, BRONZE, [bronze_row("chess", 100 + number)])
    make_checkpoint(layout, begun=0, done=0)
    with pytest.raises(CheckpointLost, match="the table has batch 2"):
        require_checkpoint(spark, layout)
