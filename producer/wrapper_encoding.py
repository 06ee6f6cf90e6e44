"""The default wrapper on the wire (`proto/demux/wrapper.proto`), encoded by hand because it is the same three fields.

Pure. https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from demux.core.protobuf.wire.varint import varint

_GAME_NAME = b"\x0a"
_SCHEMA_ID = b"\x10"
_PAYLOAD = b"\x1a"


def head(game_name: str, schema_id: int) -> bytes:
    """Return the wrapper's bytes up to the payload, for many payloads of one game and schema id (an int32)."""
    name = game_name.encode()
    return _GAME_NAME + varint(len(name)) + name + _SCHEMA_ID + varint(schema_id)


def wrapped(head_bytes: bytes, payload: bytes) -> bytes:
    """Return the wrapper around the payload."""
    size = len(payload)
    return head_bytes + _PAYLOAD + (bytes((size,)) if size < 128 else varint(size)) + payload
