"""The schemas that rows were decoded with, kept in a Delta table: a registry that is down stops nothing known."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime, timezone

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import SparkSession

from demux.errors import SchemaInvalid, SchemaUnknown
from demux.protobuf.compile import CompiledSchema, compile_schema
from demux.registry.protocol import RegisteredSchema, SchemaRegistry
from demux.spark_types import spark_struct
from demux.storage import table_exists
from demux.tables import SCHEMAS


class SchemaStore:
    """Looks schemas up: in memory, then in the table, then in the registry, which is asked only for unknown ids.

    Safe to share between threads. A schema never changes under its id, so what is known is never asked again.
    """

    def __init__(self, spark: SparkSession, path: str, registry: SchemaRegistry) -> None:
        self._spark = spark
        self._path = path
        self._registry = registry
        self._lock = threading.Lock()
        self._known: dict[int, CompiledSchema] | None = None

    def lookup(self, schema_ids: Iterable[int]) -> dict[int, CompiledSchema | SchemaUnknown | SchemaInvalid]:
        """Return the schema of each id, or why it has none; what is new is kept in the table.

        Raises:
            RegistryUnavailable: an id is not known here and the registry does not answer.
        """
        with self._lock:
            if self._known is None:
                self._known = self._load()
            known = self._known
            fetched: list[tuple[RegisteredSchema, CompiledSchema]] = []
            answers: dict[int, CompiledSchema | SchemaUnknown | SchemaInvalid] = {}
            for schema_id in sorted(set(schema_ids)):
                if schema_id in known:
                    answers[schema_id] = known[schema_id]
                    continue
                try:
                    registered = self._fetch(schema_id)
                    compiled = _without_comments(compile_schema(registered))
                except (SchemaUnknown, SchemaInvalid) as refused:
                    answers[schema_id] = refused
                    continue
                fetched.append((registered, compiled))
                answers[schema_id] = compiled
            self._keep(fetched)
            known.update({compiled.schema_id: compiled for _, compiled in fetched})
            return answers

    def _fetch(self, schema_id: int) -> RegisteredSchema:
        if schema_id <= 0:
            raise SchemaUnknown(f"Schema id {schema_id} is not positive.", "Correct the producer.", schema_id=schema_id)
        return self._registry.schema(schema_id)

    def _load(self) -> dict[int, CompiledSchema]:
        if not table_exists(self._spark, self._path):
            return {}
        rows = self._spark.read.format("delta").load(self._path).collect()
        return {
            row.schema_id: CompiledSchema(
                row.schema_id, row.subject, row.version, row.message, bytes(row.descriptor_set), row.fingerprint
            )
            for row in rows
        }

    def _keep(self, fetched: list[tuple[RegisteredSchema, CompiledSchema]]) -> None:
        if not fetched:
            return
        now = datetime.now(timezone.utc)
        rows = [
            (
                compiled.schema_id,
                compiled.subject,
                compiled.version,
                compiled.message,
                registered.path,
                registered.text,
                {reference.path: reference.text for reference in registered.references},
                bytearray(compiled.descriptor_set),
                compiled.fingerprint,
                now,
            )
            for registered, compiled in fetched
        ]
        frame = self._spark.createDataFrame(rows, spark_struct(SCHEMAS))
        frame.coalesce(1).write.format("delta").mode("append").save(self._path)


def _without_comments(compiled: CompiledSchema) -> CompiledSchema:
    """Return the schema without source comments, which every task would carry along."""
    files = FileDescriptorSet.FromString(compiled.descriptor_set)
    for file in files.file:
        file.ClearField("source_code_info")
    return CompiledSchema(
        compiled.schema_id,
        compiled.subject,
        compiled.version,
        compiled.message,
        files.SerializeToString(),
        compiled.fingerprint,
    )
