"""What every registry must do, tried on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demux.core.errors import ErrorKind, RegistryUnavailable, SchemaInvalid, SchemaUnknown
from demux.core.registry.confluent.http_client import Rest
from demux.core.registry.confluent.registry import ConfluentRegistry
from demux.core.registry.folder import FolderRegistry
from demux.core.registry.protocol import ErasableRegistry, ImportedFile, NewSchema, RegisteredSchema
from demux.core.settings.settings import RegistrySettings
from tests.fakes.registry_server import FakeRegistry, serving
from tools.memory_registry import MemoryRegistry

Open = Callable[[str | None], ErasableRegistry]
ONE, TWO = 'syntax = "proto3"; message One {}', 'syntax = "proto3"; message Two {}'


@pytest.fixture(params=["memory", "folder", "confluent"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    if request.param == "memory":
        yield lambda made_by: MemoryRegistry(made_by=made_by)
    elif request.param == "folder":
        yield lambda made_by: FolderRegistry(tmp_path / "registry", made_by=made_by)
    else:
        with serving(FakeRegistry()) as fake:
            yield lambda made_by: ConfluentRegistry(Rest(RegistrySettings(url=fake.url), {}), made_by)


@pytest.fixture
def over_http(opened: Open, request: pytest.FixtureRequest) -> bool:
    """Whether the registry keeps no path and no message, gives references ids, and shares ids between subjects."""
    return "confluent" in request.node.name


def test_a_registered_schema_comes_back_whole(opened: Open, over_http: bool) -> None:
    registry = opened(None)
    references = (ImportedFile("shared/a.proto", "// a"), ImportedFile("shared/b.proto", 'import "shared/a.proto";'))
    text = 'import "shared/b.proto";\r\nmessage X {} // é'
    schema_id = registry.register("chess", text, "games/chess.proto", references, "games.X")
    path, message = ("schema.proto", None) if over_http else ("games/chess.proto", "games.X")
    assert registry.schema(schema_id) == RegisteredSchema(schema_id, "chess", 1, text, path, references, message)
    assert registry.versions("chess") == (registry.schema(schema_id),)


def test_the_same_content_under_the_same_subject_keeps_its_id(opened: Open) -> None:
    registry = opened(None)
    ids = registry.register_all([NewSchema("chess", ONE, "a.proto"), NewSchema("chess", TWO, "a.proto")])
    again = [registry.register("chess", text, "a.proto", ()) for text in (TWO, ONE)]
    assert (ids, again) == ((1, 2), [2, 1])


def test_one_batch_may_hold_the_same_schema_twice(opened: Open) -> None:
    assert opened(None).register_all([NewSchema("chess", ONE, "a.proto")] * 2) == (1, 1)


def test_other_references_are_other_schemas(opened: Open) -> None:
    text = 'import "r.proto"; message One {}'
    schemas = [NewSchema("chess", text, "a.proto", (ImportedFile("r.proto", reference),)) for reference in ("1", "2")]
    registry = opened(None)
    first, second = registry.register_all(schemas)
    assert registry.schema(first).references == (ImportedFile("r.proto", "1"),)
    assert registry.schema(second).references == (ImportedFile("r.proto", "2"),)
    assert [version.schema_id for version in registry.versions("chess")] == [first, second]


def test_other_subjects_and_messages_are_other_schemas(opened: Open, over_http: bool) -> None:
    text = 'import "r.proto"; message One {}'
    schemas = [
        NewSchema("chess", text, "a.proto", (ImportedFile("r.proto", "1"),)),
        NewSchema("chess", text, "a.proto", (ImportedFile("r.proto", "2"),)),
        NewSchema("chess", text, "a.proto", (ImportedFile("r.proto", "2"),), "One"),
        NewSchema("go", text, "a.proto", (ImportedFile("r.proto", "2"),), "One"),
    ]
    ids = opened(None).register_all(schemas)
    # r.proto has two ids of its own there, and what is the same content has the same id
    assert ids == ((2, 4, 4, 4) if over_http else (1, 2, 3, 4))


def test_versions_count_within_a_subject_and_subjects_are_sorted(opened: Open) -> None:
    registry = opened(None)
    registry.register_all([NewSchema(subject, text, "a.proto") for text in (ONE, TWO) for subject in ("go", "chess")])
    assert [(schema.version, schema.text) for schema in registry.versions("go")] == [(1, ONE), (2, TWO)]
    assert registry.versions("poker") == ()
    assert registry.subjects() == ("chess", "go")


def test_an_unknown_id_is_said_to_be_unknown(opened: Open) -> None:
    registry = opened(None)
    registry.register("chess", ONE, "a.proto", ())
    for schema_id in (7, 0, -1):
        with pytest.raises(SchemaUnknown, match=rf"no schema {schema_id}\."):
            registry.schema(schema_id)


def test_removing_by_mark_leaves_everything_else_and_never_gives_an_id_again(opened: Open) -> None:
    registry = opened("producer")
    mine = registry.register("chess", ONE, "a.proto", ())
    assert registry.schema(mine).text == ONE
    assert registry.remove(made_by="somebody else") == ()
    assert registry.remove(made_by="producer") == (mine,)
    assert registry.remove(made_by="producer") == ()
    assert registry.subjects() == ()
    with pytest.raises(SchemaUnknown):
        registry.schema(mine)
    assert registry.register("chess", ONE, "a.proto", ()) > mine


def test_a_guid_nobody_gave_is_said_to_be_unknown(opened: Open) -> None:
    guid = "89791762-2336-4186-9674-299b90a802e2"
    with pytest.raises(SchemaUnknown, match=f"gives no GUIDs|no schema {guid}"):
        opened(None).schema_of_guid(guid)


def test_the_compatibility_is_none_where_nothing_checks(opened: Open, over_http: bool) -> None:
    assert opened(None).compatibility("chess") == ("BACKWARD" if over_http else None)


def test_a_schema_that_cannot_be_kept_changes_nothing(opened: Open) -> None:
    registry = opened(None)
    registry.register("chess", ONE, "a.proto", ())
    with pytest.raises(SchemaInvalid, match=r"'go' cannot be kept: the import path '\.\./x\.proto' is absolute or has"):
        registry.register_all([NewSchema("chess", TWO, "a.proto"), NewSchema("go", ONE, "../x.proto")])
    assert (registry.subjects(), len(registry.versions("chess"))) == (("chess",), 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(subjects=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, unique=True))
def test_any_subject_is_kept_as_it_is_and_mixed_with_no_other(
    tmp_path_factory: pytest.TempPathFactory, subjects: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("any") / "registry"
    ids = FolderRegistry(folder).register_all(
        [NewSchema(subject, f"// {subject!r}", "a.proto") for subject in subjects]
    )
    reopened = FolderRegistry(folder)
    assert reopened.subjects() == tuple(sorted(subjects))
    assert [reopened.schema(schema_id).text for schema_id in ids] == [f"// {subject!r}" for subject in subjects]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["registry"]


def test_a_memory_registry_can_play_dead() -> None:
    registry = MemoryRegistry([RegisteredSchema(5, "chess", 1, ONE, "a.proto")])
    assert registry.register("go", ONE, "a.proto", ()) == 6
    registry.reachable = False
    with pytest.raises(RegistryUnavailable) as failure:
        registry.schema(5)
    assert failure.value.kind is ErrorKind.TRANSIENT
