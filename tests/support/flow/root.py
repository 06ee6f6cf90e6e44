"""A root for one test: sends records, runs stages in this process, and reads the tables without Spark."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from demux.core.catalog.registration import look_again
from demux.core.control.games_and_rounds import Control
from demux.core.names import names_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.folder import FolderRegistry
from demux.core.root.layout import Layout, layout_of
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Settings
from demux.pipeline.context import CommandContext, registry_of
from demux.pipeline.engines import Decode, decode_of
from demux.pipeline.round import Round, run_round
from producer.delta_sink import DeltaSink
from producer.records import head, wrap_payload
from producer.run import MADE_BY, ProduceReport, ProduceRequest, produce

Rows = list[dict[str, Any]]

NOW = datetime(2024, 5, 17, 12, 0, tzinfo=timezone.utc)
# a sentence may name the registry's folder, which a copied root has elsewhere
_REGISTRY = re.compile(r"\S+/registry\b")
# differs from run to run, and means nothing for where a record is
_PASSING = frozenset({"ingested_at", "_decoded_at", "quarantined_at", "query_id", "batch_id"})


@dataclass(frozen=True, slots=True)
class Root:
    """A root with its settings, worked on by the test's own Spark session.

    Attributes:
        spark: the session.
        settings: all settings.
        kept: the folder where an object store keeps the root; None where the root is a folder itself.
    """

    spark: SparkSession
    settings: Settings
    kept: Path | None = None

    @staticmethod
    def at(spark: SparkSession, folder: Path, **changes: object) -> Root:
        """Return the root in this folder, which need not be there; `changes` are settings' sections."""
        run = {"retry_wait_s": 0.0}
        return Root(spark, Settings.model_validate({"root": str(folder), "run": run, **changes}))

    @property
    def folder(self) -> Path:
        """The folder on this machine that has the root's files, wherever the product finds them."""
        return self.kept or Path(self.settings.root)

    @property
    def layout(self) -> Layout:
        """The tables as the product finds them."""
        return layout_of(self.settings)

    @property
    def here(self) -> Layout:
        """The tables in the folder, to be read without the product."""
        return Layout(str(self.folder))

    @property
    def registry(self) -> FolderRegistry:
        return FolderRegistry(Path(self.settings.registry_path), made_by=MADE_BY)

    def copied_to(self, folder: Path, **changes: object) -> Root:
        """Return a root with the same content elsewhere, as it is after a move or a restored backup."""
        shutil.copytree(self.folder, folder)
        return Root.at(self.spark, folder, **changes)

    def said(self, **changes: object) -> dict[str, object]:
        """Return what its settings say, with other sections in place of theirs, as a file of settings has it."""
        return {**self.settings.model_dump(mode="json", exclude_unset=True), **changes}

    def workplace(self) -> CommandContext:
        """Return what a new command would work with: nothing is remembered from the command before."""
        registry = registry_of(self.settings, os.environ)
        store = SchemaStore(self.spark, self.layout, registry)
        look_again()
        control = Control(self.spark, self.layout)
        return CommandContext(self.settings, store, control, threading.Event(), spark=self.spark)

    def run(self, place: CommandContext | None = None, decode: Decode | None = None) -> Round:
        """Run one round by the engine of the settings, as a new `demux run` does.

        With a place, it is the next round of the process that has it; `decode` replaces the engine.
        """
        place = place or self.workplace()
        return run_round(place, decode or decode_of(place, self.settings.round_engine))

    def produce(self, **request: Any) -> ProduceReport:
        """Send the simulator's events."""
        return produce(ProduceRequest(**request), self.registry, DeltaSink(self.settings.source_path), now=NOW)

    def register(self, game: str, text: str, message: str | None = None) -> int:
        """Return the id of a schema, registered as the game's next version."""
        return self.registry.register(game, text, "test/event.proto", (), message)

    def message(self, schema_id: int) -> type[Message]:
        """Return the class of a registered schema's message."""
        compiled = compile_schema(self.registry.schema(schema_id))
        return message_class(pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)), compiled.message)

    def send(self, values: Sequence[bytes | None], first_offset: int | None = 0, *, at: datetime | None = None) -> None:
        """Append records to the source table, with ids `t/0/<offset>`; without an offset, the column `value` alone."""
        columns = {"value": pa.array(values, pa.binary())}
        if first_offset is not None:
            columns |= {
                "topic": pa.array(["t"] * len(values), pa.string()),
                "partition": pa.array([0] * len(values), pa.int32()),
                "offset": pa.array(range(first_offset, first_offset + len(values)), pa.int64()),
            }
        if at is not None:
            columns["timestamp"] = pa.array([at] * len(values), pa.timestamp("us", "UTC"))
        write_deltalake(self.settings.source_path, pa.table(columns), mode="append")

    def source(self) -> Rows:
        """Return the records of the source table, in order of partition and offset."""
        found = rows(self.settings.source_path)
        return sorted(found, key=lambda row: (row["partition"], row["offset"]))

    def bronze(self) -> Rows:
        """Return the rows of bronze."""
        return rows(self.here.bronze)

    def quarantine(self) -> Rows:
        """Return the rows of quarantine; none when there is no table yet."""
        return rows(self.here.quarantine)

    def silver(self, game: str) -> Rows:
        """Return the rows of the game's table; none when there is no table yet."""
        return rows(self.silver_path(game))

    def silver_columns(self, game: str) -> list[str]:
        """Return the column names of the game's table, in order."""
        return columns(self.silver_path(game))

    def silver_path(self, game: str) -> str:
        return self.here.silver(names_of(game).key)

    def everything(self) -> dict[str, tuple[list[str], Rows]]:
        """Return all rows and columns of bronze, quarantine and silver, without what passes with each run."""
        tables = [self.folder / "bronze", self.folder / "quarantine", *sorted((self.folder / "silver").glob("*"))]
        return {
            table.relative_to(self.folder).as_posix(): (columns(table), [lasting(row) for row in rows(table)])
            for table in tables
            if DeltaTable.is_deltatable(str(table))
        }


def wrapper(game: str, schema_id: int, payload: bytes) -> bytes:
    """Return the wrapper's bytes."""
    return wrap_payload(head(game, schema_id), payload)


def rows(table: str | Path) -> Rows:
    """Return a table's rows in order of record id, read by another Delta reader than the one that wrote them."""
    if not DeltaTable.is_deltatable(str(table)):
        return []
    found: Rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    key = "_record_id" if found and "_record_id" in found[0] else "record_id"
    return sorted(found, key=lambda row: str(row.get(key)))


def by_id(found: Rows) -> dict[str, dict[str, Any]]:
    """Return rows of bronze, quarantine or silver by record id, each id once."""
    result = {row["_record_id"] if "_record_id" in row else row["record_id"]: row for row in found}
    assert len(result) == len(found)
    return result


def columns(table: str | Path) -> list[str]:
    """Return a table's column names, in order."""
    return [field.name for field in DeltaTable(table).schema().fields]


def lasting(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what passes with each run."""
    return {
        name: _REGISTRY.sub("registry", value) if name == "sentence" else value
        for name, value in row.items()
        if name not in _PASSING
    }
