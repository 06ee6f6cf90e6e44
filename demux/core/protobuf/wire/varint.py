"""Numbers as Protobuf writes them: seven bits a byte, the least first. Pure.

https://protobuf.dev/programming-guides/encoding/#varints
"""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Return the bytes of a number; a negative one is written as its 64-bit two's complement, in ten bytes."""
    rest = number & 0xFFFF_FFFF_FFFF_FFFF
    result = bytearray()
    while rest > 0x7F:
        result.append(rest & 0x7F | 0x80)
        rest >>= 7
    result.append(rest)
    return bytes(result)
