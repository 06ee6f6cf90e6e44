"""A query's batches: who they are, how they come again after a failure, and how a failure is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.app_transactions import Batch
from demux.core.errors import RegistryUnavailable, TaskFailed
from demux.core.storage.files import Storage
from demux.core.streaming.checkpoints import read_checkpoint
from demux.core.streaming.query import Every, run_query
from tests.support.spark.tables import write

NUMBERS = Struct((Column("number", Primitive.BIGINT),))
Seen = list[tuple[Batch, list[int]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Callable[[Exception | None], Seen]:
    """Runs a query over the table of numbers and returns its batches; each batch raises the error."""

    def one(error: Exception | None = None) -> Seen:
        seen: Seen = []

        def on_batch(frame: DataFrame, batch: Batch) -> None:
            seen.append((batch, sorted(row.number for row in frame.collect())))
            if error is not None:
                raise error

        source = spark.readStream.format("delta").load(f"{tmp_path}/numbers")
        run_query(Storage(), source, f"{tmp_path}/checkpoint", "numbers", on_batch)
        return seen

    return one


def add(folder: Path, *numbers: int) -> None:
    write(f"{folder}/numbers", NUMBERS, [{"number": number} for number in numbers])


def test_each_batch_has_the_querys_own_id_and_the_next_number(
    spark: SparkSession, tmp_path: Path, run: Callable[..., Seen]
) -> None:
    add(tmp_path, 1, 2)
    ((first, numbers),) = run()
    assert (first.batch_id, first.retried, numbers) == (0, False, [1, 2])
    # nothing new: no batch
    assert run() == []
    add(tmp_path, 3)
    ((second, numbers),) = run()
    assert (second, numbers) == (Batch(first.query_id, 1, retried=False), [3])
    checkpoint = read_checkpoint(Storage(), f"{tmp_path}/checkpoint")
    assert (checkpoint.query_id, checkpoint.begun, checkpoint.done) == (first.query_id, 1, 1)


def test_a_batch_that_failed_comes_again_with_the_same_rows_and_says_so(
    spark: SparkSession, tmp_path: Path, run: Callable[..., Seen]
) -> None:
    add(tmp_path, 1, 2)
    with pytest.raises(TaskFailed, match="ValueError: the disk is made of cheese"):
        run(ValueError("the disk is made of cheese"))
    assert read_checkpoint(Storage(), f"{tmp_path}/checkpoint").unfinished == 0
    add(tmp_path, 3)
    (again, numbers), (after, new) = run()
    assert (again.batch_id, again.retried, numbers) == (0, True, [1, 2])
    assert (after, new) == (Batch(again.query_id, 1, retried=False), [3])


def test_a_stream_that_is_stopped_in_a_backlog_begins_no_further_batch(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(4):
        add(tmp_path, number)
    stop, batches = threading.Event(), list[int]()

    def on_batch(_: DataFrame, batch: Batch) -> None:
        batches.append(batch.batch_id)
        if batch.batch_id == 1:
            stop.set()

    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", "1")
    source = reader.load(f"{tmp_path}/numbers")
    run_query(Storage(), source, f"{tmp_path}/checkpoint", "numbers", on_batch, Every(0.01, stop))
    assert batches == [0, 1]
    run_query(Storage(), source, f"{tmp_path}/checkpoint", "numbers", on_batch)
    assert batches == [0, 1, 2, 3]


def test_an_error_in_our_words_arrives_as_it_was_raised(tmp_path: Path, run: Callable[..., Seen]) -> None:
    add(tmp_path, 1)
    error = RegistryUnavailable("The registry sleeps.", "Wake it.")
    with pytest.raises(RegistryUnavailable) as raised:
        run(error)
    assert raised.value is error


def test_a_source_that_was_replaced_by_another_table_is_a_failure_and_not_a_new_beginning(
    spark: SparkSession, tmp_path: Path, run: Callable[..., Seen]
) -> None:
    add(tmp_path, 1)
    run()
    (tmp_path / "numbers").rename(tmp_path / "old")
    add(tmp_path, 1, 2)
    with pytest.raises(TaskFailed):
        run()
