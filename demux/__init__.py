"""Protobuf demux: one stream of wrapped messages in, one typed Delta table per game out.

`decode` and `encode` do the same for a column of any frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from demux.api.decode_column import decode as decode
    from demux.api.encode_column import encode as encode

__all__ = ["decode", "encode"]


def __getattr__(name: str) -> object:
    # every command and every worker imports this package: what few of them need is loaded when it is asked for
    if name == "decode":
        from demux.api.decode_column import decode

        return decode
    if name == "encode":
        from demux.api.encode_column import encode

        return encode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
