"""Where the schemas of a column come from: a folder, an object, ids, a file; and what is said when they do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demux.api.payload_schemas import open_named_registry, schema_of_file, schemas_of_ids, schemas_of_subject
from demux.core.errors import ArgumentInvalid, RegistryUnavailable, SchemaInvalid, SchemaUnknown
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.registry.folder import FolderRegistry
from demux.core.registry.protocol import RegisteredSchema
from tests.support.data.chess import VERSION_1, VERSION_3, compiled
from tools.memory_registry import MemoryRegistry

BROKEN = 'syntax = "proto3"; message Chess { string user_name = ; }'


@pytest.fixture
def registry() -> MemoryRegistry:
    texts = {11: VERSION_1, 12: BROKEN, 13: VERSION_3}
    return MemoryRegistry(RegisteredSchema(at, "chess", at - 10, text, "chess.proto") for at, text in texts.items())


def test_a_subject_is_all_its_versions_and_one_that_does_not_compile_says_so(registry: MemoryRegistry) -> None:
    found = schemas_of_subject(open_named_registry(registry), "chess", None)
    assert list(found) == [11, 12, 13]
    assert [type(one) for one in found.values()] == [CompiledSchema, SchemaInvalid, CompiledSchema]


def test_an_unknown_subject_names_the_nearest(registry: MemoryRegistry) -> None:
    with pytest.raises(SchemaUnknown, match="no subject 'ches'; the nearest is 'chess'"):
        schemas_of_subject(registry, "ches", None)


def test_a_registry_that_is_down_is_an_error_of_its_own(registry: MemoryRegistry, tmp_path: Path) -> None:
    registry.reachable = False
    with pytest.raises(RegistryUnavailable):
        schemas_of_subject(registry, "chess", None)
    with pytest.raises(RegistryUnavailable, match="No such file"):
        schemas_of_subject(open_named_registry(tmp_path), "chess", None)


def test_ids_that_the_registry_lacks_are_left_to_their_rows_unless_it_has_none_of_them(
    registry: MemoryRegistry,
) -> None:
    assert list(schemas_of_ids(registry, [99, 13], None)) == [13]
    with pytest.raises(SchemaUnknown, match="no schema 99"):
        schemas_of_ids(registry, [99], None)


def test_a_registry_is_a_folder_by_path_or_by_settings(tmp_path: Path) -> None:
    made = FolderRegistry(tmp_path)
    made.register("chess", VERSION_1, "chess.proto", ())
    for named in (tmp_path, str(tmp_path), {"path": str(tmp_path)}):
        assert list(schemas_of_subject(open_named_registry(named), "chess", None)) == [1]


def test_the_settings_of_a_registry_are_checked_and_never_show_a_password() -> None:
    with pytest.raises(ArgumentInvalid, match="password: expected secret:env/NAME") as refused:
        open_named_registry({"url": "http://localhost:1", "username": "anna", "password": "hunter2", "tiemout_s": 1})
    assert "hunter2" not in str(refused.value)
    assert "tiemout_s" in str(refused.value)


def test_a_message_that_a_version_lacks_makes_that_version_invalid(registry: MemoryRegistry) -> None:
    found = schemas_of_subject(registry, "chess", "Chess.Board")
    assert isinstance(found[11], SchemaInvalid)
    assert isinstance(found[13], CompiledSchema)
    assert found[13].message == "Chess.Board"


def test_a_proto_file_imports_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "board.proto").write_text('syntax = "proto3"; message Board { bool blitz = 1; }')
    (tmp_path / "game.proto").write_text(
        'syntax = "proto3"; import "board.proto"; message Game { Board board = 1; } message Other {}'
    )
    assert schema_of_file(tmp_path / "game.proto", None).message == "Game"
    assert schema_of_file(str(tmp_path / "game.proto"), "Board").message == "Board"
    with pytest.raises(SchemaInvalid, match="nearest name is 'Game'"):
        schema_of_file(tmp_path / "game.proto", "Gam")


def test_a_descriptor_set_comes_as_bytes_or_as_a_file(tmp_path: Path) -> None:
    schema = compiled(VERSION_3, 13)
    (tmp_path / "chess.desc").write_bytes(schema.descriptor_set)
    assert schema_of_file(schema.descriptor_set, None).message == "Chess"
    assert schema_of_file(tmp_path / "chess.desc", "Chess.Board").message == "Chess.Board"
    with pytest.raises(SchemaInvalid, match="no message 'Go' in the descriptor set"):
        schema_of_file(schema.descriptor_set, "Go")


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"hello"])
def test_bytes_that_are_no_descriptor_set_say_so(data: bytes) -> None:
    with pytest.raises(SchemaInvalid, match="no FileDescriptorSet"):
        schema_of_file(data, None)


def test_a_file_that_is_not_there_or_is_a_folder_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "latin.proto").write_bytes(b'syntax = "proto3"; // \xe9')
    with pytest.raises(ArgumentInvalid, match="There is no file"):
        schema_of_file(tmp_path / "none.proto", None)
    with pytest.raises(ArgumentInvalid, match="cannot be read"):
        schema_of_file(tmp_path, None)
    with pytest.raises(SchemaInvalid, match="is not UTF-8"):
        schema_of_file(tmp_path / "latin.proto", None)


@pytest.mark.thorough
def test_the_package_itself_loads_nothing() -> None:
    heavy = ("pyarrow", "pydantic", "demux.api", "google.protobuf")
    script = f"import sys, demux; print([one for one in {heavy} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
