"""Schemas that were used are known for ever: to this process, and by the table to every later one."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import SparkSession

from demux.core.errors import RegistryUnavailable, SchemaInvalid, SchemaUnknown
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.registry.protocol import ImportedFile, NewSchema, SchemaRegistry
from demux.core.root.layout import Layout
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import GameRegistry, SchemaStore
from demux.core.schemas.subject_choice import GameSchemas
from demux.core.settings.games import SubjectRule
from tests.support.spark.registries import CountingRegistry, every_game, ids
from tests.support.spark.tables import read

EVENT = (
    'syntax = "proto3";\npackage g;\nimport "g/user.proto";\n// who did it\nmessage Event { User user = 1; }\n'
    "message Session { message Start {} }\n"
)
USER = 'syntax = "proto3";\npackage g;\nmessage User { string name = 1; }\n'
ONE, GUID, OTHER_GUID = SchemaRef(1), "89791762-2336-4186-9674-299b90a802e2", "10000000-0000-0000-0000-000000000000"


@pytest.fixture
def registry() -> CountingRegistry:
    registry = CountingRegistry({GUID: 1})
    registry.register_all(
        [
            NewSchema("chess", EVENT, "g/event.proto", (ImportedFile("g/user.proto", USER),)),
            NewSchema("chess", "this is no schema", "g/event.proto"),
        ]
    )
    return registry


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path))


def message(store: SchemaStore, ref: SchemaRef) -> str:
    schema = store.lookup([ref], "chess")[ref]
    assert isinstance(schema, CompiledSchema), schema
    return schema.message


def test_a_schema_is_asked_for_once_and_kept_with_all_that_it_needs(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, layout, every_game(registry))
    first = store.lookup([ONE], "chess")[ONE]
    assert isinstance(first, CompiledSchema)
    assert (first.subject, first.version, first.message) == ("chess", 1, "g.Event")
    assert store.lookup([ONE, ONE], "chess") == {ONE: first}
    assert registry.asked == [1]
    names = ("registry", "schema_id", "guid", "subject", "version", "message", "path", "text", "references")
    assert read(layout.schemas, *names) == [
        ("default", 1, None, "chess", 1, "g.Event", "g/event.proto", EVENT, [("g/user.proto", USER)])
    ]
    # of all that protoc says of the text, the comments are kept
    locations = [
        at for f in FileDescriptorSet.FromString(first.descriptor_set).file for at in f.source_code_info.location
    ]
    assert [(at.leading_comments, list(at.span)) for at in locations] == [(" who did it\n", [])]


def test_a_later_process_knows_it_without_the_registry(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    refs = {ONE, SchemaRef(None, GUID), SchemaRef(1, None, "1")}
    known = SchemaStore(spark, layout, every_game(registry)).lookup(refs, "chess")
    registry.reachable = False
    store = SchemaStore(spark, layout, every_game(registry))
    assert store.lookup(refs, "chess") == known
    assert registry.asked == [1, GUID]
    with pytest.raises(RegistryUnavailable):
        store.lookup(ids(1, 2), "chess")


def test_a_registry_is_not_even_opened_for_what_is_known(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    def opened() -> SchemaRegistry:
        raise RegistryUnavailable("Its password is gone.", "Give it.")

    known = SchemaStore(spark, layout, every_game(registry)).lookup([ONE], "chess")
    store = SchemaStore(spark, layout, lambda game: GameRegistry(GameSchemas("default", SubjectRule(game)), opened))
    assert store.lookup([ONE], "chess") == known
    with pytest.raises(RegistryUnavailable, match="Its password is gone"):
        store.lookup(ids(2), "chess")


def test_a_schema_that_is_unknown_or_invalid_is_no_failure_and_is_asked_for_again(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, layout, every_game(registry))
    unknown = SchemaRef(None, OTHER_GUID)
    for _ in range(2):
        answers = store.lookup([SchemaRef(2), SchemaRef(99), unknown], "chess")
        assert isinstance(answers[SchemaRef(2)], SchemaInvalid)
        assert isinstance(answers[SchemaRef(99)], SchemaUnknown)
        assert isinstance(answers[unknown], SchemaUnknown)
    assert registry.asked == [2, 99, OTHER_GUID] * 2
    assert not Path(layout.schemas).exists()


def test_an_id_that_no_registry_can_have_is_not_asked_for(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    answers = SchemaStore(spark, layout, every_game(registry)).lookup(ids(0, -7, -(2**31), None), "chess")
    assert {ref.schema_id: str(answer) for ref, answer in answers.items()} == {
        0: "[SCHEMA_UNKNOWN] Schema id 0 is not positive. Correct the producer.",
        -7: "[SCHEMA_UNKNOWN] Schema id -7 is not positive. Correct the producer.",
        -(2**31): "[SCHEMA_UNKNOWN] Schema id -2147483648 is not positive. Correct the producer.",
        None: "[SCHEMA_UNKNOWN] The record has no schema id. Correct the producer.",
    }
    assert registry.asked == []


def test_what_is_known_is_not_lost_when_the_registry_fails_in_the_same_question(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, layout, every_game(registry))
    registry.reachable = False
    with pytest.raises(RegistryUnavailable):
        store.lookup([ONE], "chess")
    registry.reachable = True
    assert isinstance(store.lookup([ONE], "chess")[ONE], CompiledSchema)


def test_threads_that_ask_at_the_same_time_ask_the_registry_once(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    store = SchemaStore(spark, layout, every_game(registry))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: store.lookup([ONE], "chess")[ONE], range(8)))
    assert len(set(answers)) == 1
    assert registry.asked == [1]
    # made, then written once
    assert DeltaTable(layout.schemas).version() == 1


def test_a_registry_that_does_not_answer_holds_up_no_game_of_another_one(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    asked, answers = threading.Event(), threading.Event()

    def opened() -> SchemaRegistry:
        asked.set()
        assert answers.wait(30)
        return registry

    choice = {
        "chess": GameRegistry(GameSchemas("default", SubjectRule("chess")), lambda: registry),
        "go": GameRegistry(GameSchemas("silent", SubjectRule("go")), opened),
    }
    store = SchemaStore(spark, layout, choice.__getitem__)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.lookup, [ONE], "go")
        assert asked.wait(30)
        assert isinstance(store.lookup([ONE], "chess")[ONE], CompiledSchema)
        assert not waiting.done()
        answers.set()
        assert isinstance(waiting.result()[ONE], CompiledSchema)
    assert read(layout.schemas, "registry", "schema_id") == [("default", 1), ("silent", 1)]


def test_two_registries_may_give_one_id_to_different_schemas(spark: SparkSession, layout: Layout) -> None:
    here, there = CountingRegistry({GUID: 1}), CountingRegistry({GUID: 2})
    here.register("chess", 'syntax = "proto3"; message Here {}', "h.proto", ())
    there.register("go", 'syntax = "proto3"; message There {}', "t.proto", ())
    there.register("go", 'syntax = "proto3"; message ByGuid {}', "t.proto", ())
    choice = {
        "chess": GameRegistry(GameSchemas("default", SubjectRule("chess")), lambda: here),
        "go": GameRegistry(GameSchemas("asia", SubjectRule("go")), lambda: there),
    }

    def found(store: SchemaStore) -> dict[str, list[object]]:
        refs = (ONE, SchemaRef(None, GUID))
        answers = {game: store.lookup(refs, game) for game in choice}
        return {game: [getattr(answers[game][ref], "message", None) for ref in refs] for game in choice}

    expected = {"chess": ["Here", "Here"], "go": ["There", "ByGuid"]}
    assert found(SchemaStore(spark, layout, choice.__getitem__)) == expected
    here.reachable = there.reachable = False
    assert found(SchemaStore(spark, layout, choice.__getitem__)) == expected
    assert read(layout.schemas, "registry", "schema_id", "guid", "message") == [
        ("asia", 1, None, "There"),
        ("asia", 2, GUID, "ByGuid"),
        ("default", 1, GUID, "Here"),
    ]


def test_a_guid_of_a_schema_that_is_known_by_its_id_is_noted_beside_it(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    by_guid = SchemaRef(None, GUID)
    store = SchemaStore(spark, layout, every_game(registry))
    known = store.lookup([ONE], "chess")[ONE]
    assert store.lookup([by_guid], "chess")[by_guid] == known
    assert read(layout.schemas, "schema_id", "guid") == [(1, GUID)]
    registry.reachable = False
    # a guid decides, whatever id stands beside it
    both = SchemaRef(77, GUID)
    assert SchemaStore(spark, layout, every_game(registry)).lookup([both, ONE], "chess") == {both: known, ONE: known}


def test_the_message_is_the_row_s_own_or_the_configured_one_or_the_first(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    by_row, by_guid = SchemaRef(1, None, "1,0"), SchemaRef(None, GUID, "1")
    plain = SchemaStore(spark, layout, every_game(registry))
    assert [message(plain, ref) for ref in (ONE, by_row, by_guid)] == ["g.Event", "g.Session.Start", "g.Session"]
    configured = every_game(registry, {"chess": "g.User", "go": "g.Nothing"})
    # what is in the table is not asked for again, and follows the settings of today
    later = SchemaStore(spark, layout, configured)
    assert [message(later, ref) for ref in (ONE, by_row, by_guid)] == ["g.User", "g.Session.Start", "g.Session"]
    assert message(SchemaStore(spark, layout, every_game(registry)), ONE) == "g.Event"
    assert registry.asked == [1, GUID]
    assert read(layout.schemas, "schema_id", "message") == [(1, "g.Event")]


def test_indexes_or_settings_that_lead_to_no_message_make_the_schema_invalid_and_are_not_kept(
    spark: SparkSession, layout: Layout, registry: CountingRegistry
) -> None:
    lost, odd = SchemaRef(1, None, "2"), SchemaRef(1, None, "-1")
    answers = SchemaStore(spark, layout, every_game(registry, {"chess": "g.Nothing"})).lookup([ONE, lost, odd], "chess")
    assert {ref: getattr(answer, "message", None) for ref, answer in answers.items()} == {
        ONE: "Schema 1 ('chess' version 1) has no message 'g.Nothing', which is named for its subject.",
        lost: "Schema 1 ('chess' version 1) has no message at the indexes 2.",
        odd: "Schema 1 ('chess' version 1) has no message at the indexes -1.",
    }
    assert all(isinstance(answer, SchemaInvalid) for answer in answers.values())
    assert message(SchemaStore(spark, layout, every_game(registry)), ONE) == "g.Event"
