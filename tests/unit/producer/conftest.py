from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema
from producer.events import EventWriter
from producer.schemas import games, proto_path, proto_text

ROOT = Path(__file__).parents[3]


def compiled_class(text: str, path: str) -> type[Message]:
    compiled = compile_schema(RegisteredSchema(1, "s", 1, text, path))
    return message_class(pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)), compiled.message)


@pytest.fixture(scope="session")
def wrapper_class() -> type[Message]:
    return compiled_class((ROOT / "proto" / "demux" / "wrapper.proto").read_text("utf-8"), "demux/wrapper.proto")


@pytest.fixture(scope="session")
def writer() -> Callable[[int, int], EventWriter]:
    """Who writes events of the game with this number in this version; ids are 10 * number + version."""

    def made(number: int, version: int) -> EventWriter:
        game = games(20)[number]
        message = compiled_class(proto_text(game, version), proto_path(game))
        return EventWriter(game, version, 10 * number + version, message)

    return made
