"""What the tables of a root that is at rest must be: as `google.protobuf` decodes bronze. Without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from deltalake import DeltaTable
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from demux.core.causes import Cause
from demux.core.names import names_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.folder import FolderRegistry
from demux.core.root.layout import Layout
from tests.support.flow.fleet_oracle import Tables, differences
from tests.support.flow.root import by_id, rows

_SHOWN = 3
_WARNED = re.compile(r"^[0-9: ,-]+ (?:WARNING|ERROR) (.+)$", re.MULTILINE)


def mistakes(root: Path) -> Iterator[str]:
    """Yield what is wrong in silver, and what waits in quarantine for a schema that is known."""
    layout = Layout(str(root))
    messages = _messages(FolderRegistry(root / "registry"))
    bronze, quarantine = by_id(rows(layout.bronze)), rows(layout.quarantine)
    games = sorted({row["game_name"] for row in bronze.values()})
    paths = {game: layout.silver(names_of(game).key) for game in games}
    silver = {game: DeltaTable(path).to_pyarrow_table() for game, path in paths.items()}
    yield from islice(differences(Tables({}, bronze, by_id(quarantine), silver), messages), _SHOWN)
    unknown = [row for row in quarantine if row["cause"] == Cause.UNKNOWN_SCHEMA.value]
    if waiting := [row["record_id"] for row in unknown if row["schema_id"] in messages]:
        yield f"{len(waiting)} records wait in quarantine for a schema that is known, such as {waiting[0]}"


def failed_tasks(root: Path) -> Iterator[str]:
    """Yield the tasks of rounds that have failed, each sentence once."""
    failures = {}
    for row in rows(Layout(str(root)).rounds):
        if row["condition"] is not None:
            failures[row["condition"], row["sentence"]] = row
    for (condition, sentence), row in failures.items():
        yield f"a task of {row['game_name']} failed at {row['finished_at']:%H:%M:%S}: {condition} {sentence}"


def warnings(root: Path) -> Iterator[str]:
    """Yield what the commands' own log warns of, each sentence once."""
    log = root / "logs" / "demux.log"
    found = dict.fromkeys(_WARNED.findall(log.read_text("utf-8")))
    yield from (f"the log says: {said}" for said in found)


def _messages(registry: FolderRegistry) -> dict[int, type[Message]]:
    found = {}
    for subject in registry.subjects():
        for schema in registry.versions(subject):
            compiled = compile_schema(schema)
            pool = pool_of(FileDescriptorSet.FromString(compiled.descriptor_set))
            found[schema.schema_id] = message_class(pool, compiled.message)
    return found
