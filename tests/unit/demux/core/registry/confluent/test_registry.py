"""What a registry over HTTP answers, keeps and forgets, tried on a server that speaks its protocol."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from demux.core.errors import (
    RegistryUnavailable,
    SchemaIncompatible,
    SchemaInvalid,
    SchemaUnknown,
)
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.confluent.registry import ConfluentRegistry
from demux.core.registry.protocol import ImportedFile, SubjectVersion
from tests.fakes.registry_server import FakeRegistry, proto

ONE, TWO = 'syntax = "proto3"; message One {}', 'syntax = "proto3"; message Two {}'
BASE = ImportedFile("base.proto", 'syntax = "proto3"; message B {}')
CHESS = ("chess", 'syntax = "proto3"; import "base.proto";', "chess.proto", (BASE,))

Connect = Callable[..., ConfluentRegistry]


class TestReading:
    def test_nested_references_come_with_the_schema_and_each_is_fetched_once(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        fake.put("base", proto('syntax = "proto3"; message Base {}'))
        fake.put(
            "left",
            proto('syntax = "proto3"; import "base.proto"; message L { Base b = 1; }', ("base.proto", "base", 1)),
        )
        fake.put(
            "right",
            proto('syntax = "proto3"; import "base.proto"; message R { Base b = 1; }', ("base.proto", "base", 1)),
        )
        main = 'syntax = "proto3"; import "left.proto"; import "right.proto"; message Main { L l = 1; R r = 2; }'
        schema_id = fake.put("main", proto(main, ("left.proto", "left", 1), ("right.proto", "right", 1)))
        registry = connect()
        schema = registry.schema(schema_id)
        assert [reference.path for reference in schema.references] == ["base.proto", "left.proto", "right.proto"]
        assert (schema.subject, schema.version, schema.text, schema.path) == ("main", 1, main, "schema.proto")
        assert compile_schema(schema).message == "Main"
        assert registry.schema(schema_id) == schema
        assert sorted(fake.asked) == [
            f"GET /schemas/ids/{schema_id}",
            f"GET /schemas/ids/{schema_id}/versions",
            f"GET /schemas/ids/{schema_id}/versions",
            "GET /subjects/base/versions/1",
            "GET /subjects/left/versions/1",
            "GET /subjects/right/versions/1",
        ]

    def test_the_own_path_is_never_that_of_an_import_nor_a_folder_of_one(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        fake.put("a", proto('syntax = "proto3"; message A {}'))
        fake.put("b", proto('syntax = "proto3"; message B {}'))
        text = (
            'syntax = "proto3"; import "schema.proto"; import "schema2.proto/b.proto"; message M { A a = 1; B b = 2; }'
        )
        schema = connect().schema(
            fake.put("m", proto(text, ("schema.proto", "a", 1), ("schema2.proto/b.proto", "b", 1)))
        )
        assert schema.path == "schema3.proto"

    def test_every_subject_of_an_id_is_named_also_one_that_came_later(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        text = proto('syntax = "proto3"; message A {}')
        schema_id = fake.put("zed-value", text)
        registry = connect()
        assert registry.schema(schema_id).uses == (SubjectVersion("zed-value", 1),)
        assert fake.put("abc-value", text) == schema_id
        assert registry.schema(schema_id).uses == (SubjectVersion("abc-value", 1), SubjectVersion("zed-value", 1))

    def test_of_two_versions_by_one_path_the_nearest_to_the_schema_counts(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        fake.put("base", proto("// old"))
        fake.put("base", proto("// new"))
        fake.put("mid", proto('import "base.proto";', ("base.proto", "base", 1)))
        both = (("mid.proto", "mid", 1), ("base.proto", "base", 2))
        schema = connect().schema(fake.put("main", proto('import "mid.proto"; import "base.proto";', *both)))
        assert schema.references[0] == ImportedFile("base.proto", "// new")

    def test_imports_in_a_circle_end(self, fake: FakeRegistry, connect: Connect) -> None:
        fake.put("a", proto('import "b.proto";', ("b.proto", "b", 1)))
        schema_id = fake.put("b", proto('import "a.proto";', ("a.proto", "a", 1)))
        schema = connect().schema(schema_id)
        assert [reference.path for reference in schema.references] == ["a.proto", "b.proto"]
        with pytest.raises(SchemaInvalid):
            compile_schema(schema)

    def test_the_serialized_form_compiles_to_what_the_text_does(self, fake: FakeRegistry, connect: Connect) -> None:
        base = FileDescriptorProto(name="whatever", syntax="proto3")
        base.message_type.add(name="Base")
        file = FileDescriptorProto(name="main.proto", syntax="proto3", dependency=["x/base.proto"])
        file.message_type.add(name="Main").field.add(
            name="base",
            number=1,
            type=FieldDescriptorProto.TYPE_MESSAGE,
            type_name=".Base",
            label=FieldDescriptorProto.LABEL_OPTIONAL,
        )
        serialized = [base64.b64encode(one.SerializeToString()).decode() for one in (base, file)]
        texts = [
            'syntax = "proto3"; message Base {}',
            'syntax = "proto3"; import "x/base.proto"; message Main { Base base = 1; }',
        ]
        fake.put("base", proto(serialized[0]))
        fake.put("base", proto(texts[0]))
        sets = []
        for text in (serialized[1], texts[1]):
            for version in (1, 2):
                compiled = compile_schema(
                    connect().schema(fake.put("m", proto(text, ("x/base.proto", "base", version))))
                )
                assert compiled.message == "Main"
                files = FileDescriptorSet.FromString(compiled.descriptor_set)
                for each in files.file:
                    each.ClearField("source_code_info")
                    for field in (field for message in each.message_type for field in message.field):
                        field.ClearField("json_name")
                sets.append(files)
        assert [file.name for file in sets[0].file] == ["x/base.proto", "schema.proto"]
        assert all(one == sets[0] for one in sets)

    @pytest.mark.parametrize("kind", ["AVRO", "JSON"])
    def test_a_schema_of_another_type_is_invalid(self, fake: FakeRegistry, connect: Connect, kind: str) -> None:
        schema_id = fake.put("orders", {"schema": "{}", "schemaType": kind})
        with pytest.raises(SchemaInvalid) as failure:
            connect().schema(schema_id)
        assert failure.value.message == (
            f"Schema 1 ('orders' version 1) of the registry at {fake.url} is of type {kind}, not PROTOBUF."
        )

    def test_a_reference_that_is_not_there_makes_the_schema_invalid(self, fake: FakeRegistry, connect: Connect) -> None:
        fake.put("base", proto(ONE))
        schema_id = fake.put("main", proto('import "b.proto";', ("b.proto", "base", 1)))
        fake.lose("base")
        with pytest.raises(SchemaInvalid, match=r"imports 'b\.proto' \('base' version 1\), which is not there\."):
            connect().schema(schema_id)

    def test_a_syntax_error_is_found_when_it_is_compiled(self, fake: FakeRegistry, connect: Connect) -> None:
        schema = connect().schema(fake.put("main", proto('syntax = "proto3"; messag X {')))
        with pytest.raises(SchemaInvalid, match=r"does not compile: schema\.proto:1:20:"):
            compile_schema(schema)

    def test_the_id_of_a_deleted_version_still_works(self, fake: FakeRegistry, connect: Connect) -> None:
        schema_id = fake.put("main", proto(ONE))
        fake.answer("DELETE", "/subjects/main/versions/1", {}, {})
        schema = connect().schema(schema_id)
        assert (schema.subject, schema.version, connect().versions("main")) == ("main", 1, ())

    def test_an_id_that_no_version_has_any_more_still_works(self, fake: FakeRegistry, connect: Connect) -> None:
        schema_id = fake.put("main", proto(ONE))
        fake.lose("main")
        assert (connect().schema(schema_id).subject, connect().schema(schema_id).text) == ("schema-1", ONE)
        assert connect().schema(schema_id).uses == ()

    def test_of_several_subjects_with_one_id_the_first_is_named(self, fake: FakeRegistry, connect: Connect) -> None:
        ids = {fake.put(subject, proto(ONE)) for subject in ("go", "chess")}
        assert [connect().schema(schema_id).subject for schema_id in ids] == ["chess"]

    def test_a_guid_leads_to_its_schema(self, fake: FakeRegistry, connect: Connect) -> None:
        schema_id = fake.put("main", proto(ONE))
        assert connect().schema_of_guid(fake.guid(schema_id)).schema_id == schema_id
        fake.guids = False
        with pytest.raises(SchemaUnknown, match="gives no GUIDs"):
            connect().schema_of_guid(fake.guid(schema_id))

    def test_the_level_is_the_subjects_own_or_that_of_all(self, fake: FakeRegistry, connect: Connect) -> None:
        fake.levels["chess"] = "FULL_TRANSITIVE"
        assert (connect().compatibility("chess"), connect().compatibility("go")) == ("FULL_TRANSITIVE", "BACKWARD")

    def test_any_subject_reaches_the_registry_as_it_is(self, fake: FakeRegistry, connect: Connect) -> None:
        registry = connect()
        for subject in ("a/b?c=d#e", "../x", "%2F", "é 棋", "a:b"):
            registry.register(subject, ONE, "a.proto", ())
            assert [schema.subject for schema in registry.versions(subject)] == [subject]

    def test_threads_share_a_registry(self, fake: FakeRegistry, connect: Connect) -> None:
        ids = [fake.put("main", proto(f"// {number}")) for number in range(20)]
        registry, found = connect(), {}
        threads = [
            threading.Thread(target=lambda: found.update({each: registry.schema(each).text for each in ids}))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {schema_id: f"// {number}" for number, schema_id in enumerate(ids)}


class TestRegistering:
    def test_imports_are_registered_first_under_their_paths(self, fake: FakeRegistry, connect: Connect) -> None:
        references = (
            ImportedFile("unused.proto", ONE),
            ImportedFile("mid.proto", 'syntax = "proto3"; import "base.proto";'),
            ImportedFile("base.proto", 'syntax = "proto3"; import "google/protobuf/any.proto";'),
        )
        text = 'syntax = "proto3"; import "mid.proto"; message M {}'
        schema_id = connect().register("chess", text, "chess.proto", references)
        assert fake.everything() == {"base.proto": [1], "mid.proto": [1], "chess": [1]}
        schema = connect().schema(schema_id)
        assert {reference.path for reference in schema.references} == {"base.proto", "mid.proto"}
        asked = len(fake.asked)
        assert connect().register("chess", text, "chess.proto", references) == schema_id
        assert [one for one in fake.asked[asked:] if one.endswith("/versions")] == []

    def test_an_import_of_itself_is_refused(self, connect: Connect) -> None:
        circle = (ImportedFile("a.proto", 'import "b.proto";'), ImportedFile("b.proto", 'import "a.proto";'))
        with pytest.raises(SchemaInvalid, match=r"'a\.proto' needs itself: a\.proto -> b\.proto -> a\.proto\."):
            connect().register("chess", 'import "a.proto";', "chess.proto", circle)

    def test_an_incompatible_version_is_refused_before_anything_is_written(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        connect().register("chess", ONE, "a.proto", ())
        fake.against["chess"] = ["FIELD_SCALAR_KIND_CHANGED at #/One/1", "MESSAGE_REMOVED at #/One"]
        before = fake.everything()
        with pytest.raises(SchemaIncompatible) as failure:
            connect("producer").register("chess", TWO, "a.proto", ())
        assert failure.value.message == (
            f"The registry at {fake.url} refuses the new version of 'chess' as incompatible: "
            "FIELD_SCALAR_KIND_CHANGED at #/One/1; MESSAGE_REMOVED at #/One."
        )
        assert fake.everything() == before

    def test_a_registry_that_only_finds_out_when_registering_says_it_too(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        connect().register("chess", ONE, "a.proto", ())
        fake.checks, fake.against["chess"] = False, ["MESSAGE_REMOVED"]
        with pytest.raises(SchemaIncompatible, match=r"as incompatible: MESSAGE_REMOVED\."):
            connect().register("chess", TWO, "a.proto", ())

    def test_a_text_that_the_registry_cannot_read_is_invalid(self, connect: Connect) -> None:
        with pytest.raises(
            SchemaInvalid, match=r"refuses the schema of 'chess': Invalid schema: Syntax error in :1:20"
        ):
            connect().register("chess", 'syntax = "proto3"; messag X {', "a.proto", ())


class TestTakingOut:
    def test_only_what_this_maker_registered_goes(self, fake: FakeRegistry, connect: Connect) -> None:
        theirs = connect().register("chess", ONE, "a.proto", ())
        mine = connect("producer")
        assert mine.register("chess", ONE, "a.proto", ()) == theirs
        added = [
            mine.register("chess", TWO, "a.proto", ()),
            mine.register("go", 'syntax = "proto3"; import "base.proto";', "go.proto", (BASE,)),
        ]
        assert mine.subjects() == ("base.proto", "chess", "go")
        gone = connect().remove(made_by="producer")
        assert len(gone) == 3
        assert set(gone) > set(added)
        assert fake.everything() == {"chess": [1]}

    def test_what_somebody_elses_schema_imports_by_now_stays_until_that_is_gone(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        connect("producer").register(*CHESS)
        connect("else").register("go", 'syntax = "proto3"; import "base.proto"; message Go {}', "go.proto", (BASE,))
        assert len(connect().remove(made_by="producer")) == 1
        assert connect().subjects() == ("base.proto", "go")
        assert len(connect().remove(made_by="else")) == 1
        assert len(connect().remove(made_by="producer")) == 1
        assert fake.everything() == {}

    @pytest.mark.thorough
    def test_a_crash_anywhere_while_registering_leaves_nothing_that_clean_up_misses(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        crashes = _crashes(fake, lambda: connect("producer", retries=0).register(*CHESS))
        for _ in crashes:
            connect().remove(made_by="producer")
            assert fake.everything() == {}

    @pytest.mark.thorough
    def test_a_crash_anywhere_while_cleaning_up_is_made_good_by_the_next_call(
        self, fake: FakeRegistry, connect: Connect
    ) -> None:
        connect("producer").register(*CHESS)
        crashes = _crashes(fake, lambda: connect(retries=0).remove(made_by="producer"))
        for _ in crashes:
            connect().remove(made_by="producer")
            assert fake.everything() == {}
            connect("producer").register(*CHESS)


def _crashes(fake: FakeRegistry, act: Callable[[], object]) -> Iterator[int]:
    """Each time the act failed as the registry died after one more answer, until it does not fail any more."""
    for answers in count():
        fake.answers_left = answers
        try:
            act()
        except RegistryUnavailable:
            fake.answers_left = None
            yield answers
        else:
            fake.answers_left = None
            assert answers > 5
            return
