"""A folder of schemas, and the producer's table, in a bucket."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from pathlib import Path

import pytest

from demux.core.errors import RegistryUnavailable, SchemaUnknown
from demux.core.registry.folder import FolderRegistry
from demux.core.registry.protocol import ImportedFile, NewSchema
from demux.core.storage.files import Storage
from producer.delta_sink import DeltaSink
from producer.run import MADE_BY, ProduceRequest, clean_up, produce

ONE = 'syntax = "proto3"; message One {}'
NOW = datetime(2024, 5, 17, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return f"s3://demux/{tmp_path.name}/schemas 100%+ü"


def test_schemas_are_registered_read_and_taken_back(in_store: Storage, folder: str) -> None:
    registry, other = (FolderRegistry(folder, MADE_BY, in_store) for _ in range(2))
    with pytest.raises(RegistryUnavailable, match="No such file"):
        registry.schema(1)
    text = 'import "r.proto";' + ONE
    new = NewSchema("chess", text, "g.proto", (ImportedFile("r.proto", ""),))
    assert registry.register_all([new, new]) == (1, 1)
    assert other.schema(1).references == (ImportedFile("r.proto", ""),)
    # what is not known is looked for again at once
    assert registry.register("go", ONE, "g.proto", ()) == 2
    assert other.schema(2).text == ONE
    with pytest.raises(SchemaUnknown):
        other.schema(3)
    in_store.write(f"{folder}/chess/notes.txt", b"mine")
    assert registry.remove(made_by=MADE_BY) == (1, 2)
    assert sorted(file.key for file in in_store.files(folder)) == ["chess/notes.txt", "registry.yml"]


def test_registrations_at_the_same_time_all_arrive_with_ids_of_their_own(in_store: Storage, folder: str) -> None:
    ids: list[int] = []

    def register(number: int) -> None:
        ids.append(FolderRegistry(folder, storage=in_store).register(f"game_{number}", ONE, "g.proto", ()))

    threads = [threading.Thread(target=register, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ids) == [1, 2, 3, 4, 5]
    assert len(FolderRegistry(folder, storage=in_store).subjects()) == 5


def test_a_store_that_refuses_is_a_registry_that_cannot_be_used(in_store: Storage) -> None:
    with pytest.raises(RegistryUnavailable, match=r"cannot use s3://no-such-bucket/schemas/registry\.yml"):
        FolderRegistry("s3://no-such-bucket/schemas", storage=in_store).subjects()


def test_the_producers_table_is_made_continued_and_removed(in_store: Storage, folder: str) -> None:
    registry, path = FolderRegistry(folder, MADE_BY, in_store), f"{folder}/source"
    for expected in (20, 40):
        produce(ProduceRequest(events=20, games=2), registry, DeltaSink(path, storage=in_store), now=NOW)
        assert in_store.table(path).count() == expected
    assert clean_up(registry, DeltaSink(path, storage=in_store)).target
    assert [file.key for file in in_store.files(path)] == []
