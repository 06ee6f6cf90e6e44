"""A game in three schema versions, and two schemas that do not fit it. Free of Spark."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.protocol import RegisteredSchema

_FIRST = "string user_name = 1; int32 moves = 2;"
VERSION_1 = f'syntax = "proto3"; message Chess {{ {_FIRST} }}'
# a renamed field, a wider one, a nested message
VERSION_2 = (
    'syntax = "proto3"; message Chess { string player = 1; int32 moves = 2; Board board = 3;'
    " message Board { bool blitz = 1; } }"
)
# a field in the nested message, a list
VERSION_3 = (
    'syntax = "proto3"; message Chess { string player = 1; int32 moves = 2; Board board = 3; repeated int64 clocks = 4;'
    " message Board { bool blitz = 1; string opening = 2; } }"
)
# field 2 is no number any more
MISFIT = 'syntax = "proto3"; message Chess { string user_name = 1; string moves = 2; }'
EMPTY = 'syntax = "proto3"; message Chess { }'


def compiled(text: str, schema_id: int, version: int = 1, subject: str = "chess") -> CompiledSchema:
    """The schema of this text under this id."""
    return compile_schema(RegisteredSchema(schema_id, subject, version, text, "chess.proto"))


def payload(schema: CompiledSchema, **fields: Any) -> bytes:
    """A message of the schema, serialized."""
    pool = pool_of(FileDescriptorSet.FromString(schema.descriptor_set))
    return message_class(pool, schema.message)(**fields).SerializeToString()
