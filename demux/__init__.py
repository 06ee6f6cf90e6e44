"""Protobuf demux: one stream of wrapped messages in, one typed Delta table per game out; `decode` for any frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from demux.api.decode_column import decode as decode

__all__ = ["decode"]


def __getattr__(name: str) -> object:
    # every command and every worker imports this package: what few of them need is loaded when it is asked for
    if name == "decode":
        from demux.api.decode_column import decode

        return decode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
