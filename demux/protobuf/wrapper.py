"""The default wrapper, compiled."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from demux.protobuf.compile import CompiledSchema, compile_schema
from demux.registry.protocol import RegisteredSchema

# beside the package in the wheel, in proto/ in a checkout
_PLACES = (
    Path(__file__).parent.parent / "wrapper.proto",
    Path(__file__).parent.parent.parent / "proto" / "demux" / "wrapper.proto",
)


@lru_cache(maxsize=1)
def default_wrapper() -> CompiledSchema:
    """Return the descriptor set and message name of `proto/demux/wrapper.proto`."""
    path = next(place for place in _PLACES if place.exists())
    text = path.read_text(encoding="utf-8")
    return compile_schema(RegisteredSchema(1, "demux.wrapper", 1, text, "demux/wrapper.proto"))
