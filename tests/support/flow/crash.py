"""Crashes at exact places, inside this process: what was written stays, what comes after never happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import deltalake
import pytest
from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter

import bronze_ingest.file_sink
import bronze_ingest.run
import demux.core.delta.commit
import deserializer.stream.run
from demux.core.delta.parquet_writer import commit_files
from demux.core.storage.files import Storage


class Crash(RuntimeError):
    """Stands for the end of the process."""


@contextmanager
def after_making(table: str) -> Iterator[None]:
    """Crash when the table is there, and nothing in it."""
    with pytest.MonkeyPatch.context() as patch:
        create = Storage.create_table

        def create_and_crash(self: Storage, path: str, *args: Any, **options: Any) -> deltalake.DeltaTable:
            made = create(self, path, *args, **options)
            if path == table:
                raise Crash(table)
            return made

        patch.setattr(Storage, "create_table", create_and_crash)
        yield


@contextmanager
def after_writing(table: str) -> Iterator[None]:
    """Crash when Spark's next write to the table is committed."""
    with pytest.MonkeyPatch.context() as patch:
        save = DataFrameWriter.save

        def save_and_crash(self: DataFrameWriter, path: str | None = None, *args: Any, **options: Any) -> None:
            save(self, path, *args, **options)
            if path == table:
                raise Crash(table)

        patch.setattr(DataFrameWriter, "save", save_and_crash)
        yield


class Death(BaseException):
    """A crash that no thread takes for a failure of its own game."""


@contextmanager
def after_writes(number: int, crash: type[BaseException] = Crash) -> Iterator[None]:
    """Crash when so many writes are committed, by Spark or without it, whichever tables they are of."""
    done = 0

    def counting(write: Callable[..., Any]) -> Callable[..., Any]:
        def write_and_crash(*args: Any, **options: Any) -> Any:
            nonlocal done
            result = write(*args, **options)
            # where another writer was faster, a commit of ours is none
            done += result is not False
            if done == number and result is not False:
                raise crash(f"after write {number}")
            return result

        return write_and_crash

    with pytest.MonkeyPatch.context() as patch:
        methods = ((DeltaMergeBuilder, "execute"), (DeltaTable, "delete"), (DeltaTable, "update"))
        ours = ((deltalake.DeltaTable, "create_write_transaction"), (demux.core.delta.commit, "_commit"))
        for owner, method in ((DataFrameWriter, "save"), (Storage, "write_table"), *methods, *ours):
            patch.setattr(owner, method, counting(getattr(owner, method)))
        yield


@contextmanager
def after_committing(table: str) -> Iterator[None]:
    """Crash when the files of the next batch are in the table."""
    with pytest.MonkeyPatch.context() as patch:

        def commit_and_crash(storage: Storage, path: str, *args: Any) -> None:
            commit_files(storage, path, *args)
            if path == table:
                raise Crash(table)

        patch.setattr(bronze_ingest.file_sink, "commit_files", commit_and_crash)
        yield


@contextmanager
def after_all_writes() -> Iterator[None]:
    """Crash when a batch has written everything, before its query notes in the checkpoint that it is done."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (bronze_ingest.run, deserializer.stream.run):
            patch.setattr(module, "run_query", _crashing(module.run_query))
        yield


@contextmanager
def before_sql(beginning: str) -> Iterator[None]:
    """Crash when a SQL statement that begins like this is about to run."""
    with pytest.MonkeyPatch.context() as patch:
        sql = SparkSession.sql

        def crash_or_run(self: SparkSession, text: str, *args: Any, **options: Any) -> DataFrame:
            if text.startswith(beginning):
                raise Crash(text)
            return sql(self, text, *args, **options)

        patch.setattr(SparkSession, "sql", crash_or_run)
        yield


def _crashing(run_query: Callable[..., None]) -> Callable[..., None]:
    def run(
        spark: SparkSession,
        source: DataFrame,
        checkpoint: str,
        name: str,
        on_batch: Callable[..., None],
        *trigger: object,
    ) -> None:
        def on_batch_and_crash(frame: DataFrame, batch: object) -> None:
            on_batch(frame, batch)
            raise Crash(name)

        run_query(spark, source, checkpoint, name, on_batch_and_crash, *trigger)

    return run
