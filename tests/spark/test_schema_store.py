"""Schemas that were used are known for ever: to this process, and by the table to every later one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import SparkSession

from demux.errors import RegistryUnavailable, SchemaInvalid, SchemaUnknown
from demux.protobuf.compile import CompiledSchema
from demux.registry.memory import MemoryRegistry
from demux.registry.protocol import NewSchema, Reference, RegisteredSchema
from demux.schema_store import SchemaStore
from tests.spark.tables import read

EVENT = 'syntax = "proto3";\npackage g;\nimport "g/user.proto";\n// who did it\nmessage Event { User user = 1; }\n'
USER = 'syntax = "proto3";\npackage g;\nmessage User { string name = 1; }\n'


class CountingRegistry(MemoryRegistry):
    """Remembers which ids it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def schema(self, schema_id: int) -> RegisteredSchema:
        self.asked.append(schema_id)
        return super().schema(schema_id)


@pytest.fixture
def registry() -> CountingRegistry:
    registry = CountingRegistry()
    registry.register_all(
        [
            NewSchema("chess", EVENT, "g/event.proto", (Reference("g/user.proto", USER),)),
            NewSchema("chess", "this is no schema", "g/event.proto"),
        ]
    )
    return registry


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "schemas")


def test_a_schema_is_asked_for_once_and_kept_with_all_that_it_needs(
    spark: SparkSession, path: str, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, path, registry)
    first = store.lookup([1])[1]
    assert isinstance(first, CompiledSchema)
    assert (first.subject, first.version, first.message) == ("chess", 1, "g.Event")
    assert store.lookup([1, 1]) == {1: first}
    assert registry.asked == [1]
    assert read(path, "schema_id", "subject", "version", "message", "path", "text", "references") == [
        (1, "chess", 1, "g.Event", "g/event.proto", EVENT, [("g/user.proto", USER)])
    ]
    # comments stay in the text; the tasks do not carry them
    assert not any(f.HasField("source_code_info") for f in FileDescriptorSet.FromString(first.descriptor_set).file)


def test_a_later_process_knows_it_without_the_registry(
    spark: SparkSession, path: str, registry: CountingRegistry
) -> None:
    known = SchemaStore(spark, path, registry).lookup([1])
    registry.reachable = False
    store = SchemaStore(spark, path, registry)
    assert store.lookup([1]) == known
    assert registry.asked == [1]
    with pytest.raises(RegistryUnavailable):
        store.lookup([1, 2])


def test_a_schema_that_is_unknown_or_invalid_is_no_failure_and_is_asked_for_again(
    spark: SparkSession, path: str, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, path, registry)
    for _ in range(2):
        answers = store.lookup([2, 99])
        assert isinstance(answers[2], SchemaInvalid)
        assert isinstance(answers[99], SchemaUnknown)
    assert registry.asked == [2, 99, 2, 99]
    assert not Path(path).exists()


def test_an_id_that_is_not_positive_is_not_asked_for(
    spark: SparkSession, path: str, registry: CountingRegistry
) -> None:
    answers = SchemaStore(spark, path, registry).lookup([0, -7])
    assert [str(answer) for answer in answers.values()] == [
        "[SCHEMA_UNKNOWN] Schema id -7 is not positive. Correct the producer.",
        "[SCHEMA_UNKNOWN] Schema id 0 is not positive. Correct the producer.",
    ]
    assert registry.asked == []


def test_what_is_known_is_not_lost_when_the_registry_fails_in_the_same_question(
    spark: SparkSession, path: str, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, path, registry)
    registry.reachable = False
    with pytest.raises(RegistryUnavailable):
        store.lookup([1])
    registry.reachable = True
    assert isinstance(store.lookup([1])[1], CompiledSchema)


def test_threads_that_ask_at_the_same_time_ask_the_registry_once(
    spark: SparkSession, path: str, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, path, registry)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: store.lookup([1])[1], range(8)))
    assert len({id(answer) for answer in answers}) == 1
    assert registry.asked == [1]
    assert DeltaTable(path).version() == 0
