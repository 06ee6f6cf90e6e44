from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from demux.core.errors import ErrorKind, ExitCode, RegistryUnavailable, SchemaInvalid
from demux.core.registry.folder import MANIFEST, FolderRegistry
from demux.core.registry.protocol import ImportedFile, NewSchema, SubjectVersion

ONE = 'syntax = "proto3"; message One {}'


def manifest(folder: Path, *files: str, more: str = "") -> FolderRegistry:
    folder.mkdir(exist_ok=True)
    lines = [f"- {{id: {at}, subject: s{at}, version: 1, file: {file!r}{more}}}" for at, file in enumerate(files, 1)]
    (folder / MANIFEST).write_text("\n".join(["schemas:", *lines]), "utf-8")
    return FolderRegistry(folder)


def test_imports_are_read_from_the_folder_and_well_known_ones_need_no_file(tmp_path: Path) -> None:
    registry = manifest(tmp_path, "games/chess.proto")
    (tmp_path / "games").mkdir()
    text = 'import "shared/player.proto"; import "google/protobuf/timestamp.proto";'
    (tmp_path / "games" / "chess.proto").write_text(text)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "player.proto").write_text("// player")
    schema = registry.schema(1)
    assert (schema.path, schema.text) == ("games/chess.proto", text)
    assert schema.references == (ImportedFile("shared/player.proto", "// player"),)


def test_with_an_import_root_paths_start_there(tmp_path: Path) -> None:
    registry = manifest(tmp_path, "v1/chess.proto", more=", import_root: v1/")
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "chess.proto").write_text('import "player.proto";')
    (tmp_path / "v1" / "player.proto").write_text("")
    schema = registry.schema(1)
    assert (schema.path, schema.references) == ("chess.proto", (ImportedFile("player.proto", ""),))


def test_registered_files_are_written_once_each_version_in_its_own_folder(tmp_path: Path) -> None:
    registry = FolderRegistry(tmp_path)
    registry.register("../../x", ONE, "g.proto", ())
    registry.register("chess", ONE, "g.proto", ())
    registry.register("chess", ONE + "//", "g.proto", ())
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.proto"))
    assert files[:2] == ["chess/v1/g.proto", "chess/v2/g.proto"]
    assert files[2].startswith("x__")
    assert list(tmp_path.rglob("*.tmp")) == []


def test_a_change_of_the_folder_is_seen_at_once(tmp_path: Path) -> None:
    registry, other = FolderRegistry(tmp_path), FolderRegistry(tmp_path)
    registry.register("chess", ONE, "g.proto", ())
    assert other.subjects() == ("chess",)
    registry.register("go", ONE, "g.proto", ())
    assert other.subjects() == ("chess", "go")


def test_nobody_elses_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "chess" / "v1").mkdir(parents=True)
    (tmp_path / "chess" / "v1" / "g.proto").write_text("// mine")
    registry = FolderRegistry(tmp_path)
    assert registry.schema(registry.register("chess", ONE, "g.proto", ())).text == ONE
    assert (tmp_path / "chess" / "v1" / "g.proto").read_text() == "// mine"


def test_a_link_out_of_the_folder_is_not_written_through(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "registry"
    outside.mkdir()
    folder.mkdir()
    (folder / "chess").symlink_to(outside)
    with pytest.raises(SchemaInvalid, match="is a link to somewhere else"):
        FolderRegistry(folder).register("chess", ONE, "g.proto", ())
    assert list(outside.iterdir()) == []


def test_a_bad_file_fails_its_own_schema_only(tmp_path: Path) -> None:
    outside = tmp_path / "outside.proto"
    outside.write_text("// secret")
    folder = tmp_path / "registry"
    registry = manifest(folder, "good.proto", "gone.proto", "../outside.proto", "link.proto", "loop.proto", "bad.proto")
    (folder / "good.proto").write_text(ONE)
    (folder / "link.proto").symlink_to(outside)
    (folder / "loop.proto").symlink_to(folder / "loop.proto")
    (folder / "bad.proto").write_bytes(b"\xff")
    assert registry.schema(1).text == ONE
    said = {}
    for schema_id in range(2, 7):
        with pytest.raises(SchemaInvalid) as failure:
            registry.schema(schema_id)
        said[schema_id] = failure.value.message.removeprefix(f"{folder / MANIFEST} ")
    assert said == {
        2: "line 3 (id 2): the file 'gone.proto' is not there.",
        3: "line 4 (id 3): the file '../outside.proto' is absolute or has empty, `.` or `..` parts.",
        4: "line 5 (id 4): the file 'link.proto' is outside of the folder.",
        5: said[5],
        6: "line 7 (id 6): the file 'bad.proto' is not UTF-8 text.",
    }
    assert "loop.proto" in said[5]


def test_an_import_never_leaves_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.proto").write_text("// secret")
    folder = tmp_path / "registry"
    registry = manifest(folder, "a.proto")
    secret = tmp_path / "secret.proto"
    (folder / "a.proto").write_text(f'import "../secret.proto"; import "{secret}";')
    assert registry.schema(1).references == ()


def test_a_pipe_is_no_file_and_nobody_waits_for_it(tmp_path: Path) -> None:
    registry = manifest(tmp_path, "pipe.proto")
    os.mkfifo(tmp_path / "pipe.proto")
    with pytest.raises(SchemaInvalid, match="is not there"):
        registry.schema(1)


def test_a_missing_folder_or_manifest_is_transient(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(RegistryUnavailable) as failure:
            FolderRegistry(folder).schema(1)
        assert (failure.value.kind, failure.value.exit_code) == (ErrorKind.TRANSIENT, ExitCode.TRANSIENT)
        assert failure.value.message == f"The registry cannot use {folder / MANIFEST}: No such file or directory."


def test_a_folder_that_cannot_be_made_is_transient(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RegistryUnavailable):
        FolderRegistry(tmp_path / "file" / "registry").register("chess", ONE, "g.proto", ())


def test_a_broken_manifest_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b"schemas: [")
    with pytest.raises(SchemaInvalid, match="line 1"):
        FolderRegistry(tmp_path).register("chess", ONE, "g.proto", ())
    assert (tmp_path / MANIFEST).read_bytes() == b"schemas: ["
    (tmp_path / MANIFEST).write_bytes(b"\xff")
    with pytest.raises(SchemaInvalid, match="is not UTF-8"):
        FolderRegistry(tmp_path).subjects()


def test_clean_up_where_there_is_no_registry_finds_and_makes_nothing(tmp_path: Path) -> None:
    assert FolderRegistry(tmp_path / "gone").remove(made_by="producer") == ()
    assert list(tmp_path.iterdir()) == []


def test_clean_up_takes_its_own_files_and_folders_and_nothing_else(tmp_path: Path) -> None:
    hand = manifest(tmp_path, "good.proto")
    (tmp_path / "good.proto").write_text(ONE)
    marked = FolderRegistry(tmp_path, made_by="producer")
    text = 'import "r.proto";' + ONE
    assert marked.register("s1", ONE, "good.proto", ()) == 1
    marked.register_all(
        [NewSchema(subject, text, "g.proto", (ImportedFile("r.proto", ""),)) for subject in ("go", "chess")]
    )
    (tmp_path / "go" / "notes.txt").write_text("mine")
    assert marked.remove(made_by="producer") == (2, 3)
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.name[0] != ".")
    assert left == ["go", "go/notes.txt", "good.proto", "registry.yml"]
    assert hand.schema(1).text == ONE


def test_registrations_at_the_same_time_all_arrive_with_ids_of_their_own(tmp_path: Path) -> None:
    ids: list[int] = []

    def register(number: int) -> None:
        ids.append(FolderRegistry(tmp_path).register(f"game_{number}", ONE, "g.proto", ()))

    threads = [threading.Thread(target=register, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ids) == list(range(1, 9))
    assert len(FolderRegistry(tmp_path).subjects()) == 8


def test_entries_of_several_subjects_may_share_an_id_and_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.proto").write_text('syntax = "proto3"; message A {}')
    (tmp_path / "b.proto").write_text('syntax = "proto3"; message B {}')
    manifest = tmp_path / "registry.yml"
    manifest.write_text(
        "schemas:\n- {id: 7, subject: zed, version: 2, file: a.proto}\n"
        "- {id: 7, subject: abc, version: 1, file: a.proto, message: A, made_by: us}\n"
    )
    registry = FolderRegistry(tmp_path)
    assert registry.schema(7).uses == (SubjectVersion("zed", 2), SubjectVersion("abc", 1, "A"))
    assert [schema.uses for schema in registry.versions("abc")] == [(SubjectVersion("abc", 1, "A"),)]
    # what one subject takes back leaves the other's
    assert registry.remove(made_by="us") == (7,)
    assert registry.schema(7).uses == (SubjectVersion("zed", 2),)
    manifest.write_text(manifest.read_text() + "- {id: 7, subject: go, version: 1, file: b.proto}\n")
    with pytest.raises(SchemaInvalid, match=r"line \d: id 7 has another text on line \d"):
        registry.schema(7)
