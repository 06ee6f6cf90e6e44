"""Text from outside, safe to print on a terminal."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str) -> str:
    r"""Return the text with every invisible or control character written as `\uXXXX`."""
    return "".join(
        f"\\u{ord(character):04x}" if unicodedata.category(character) in _HIDDEN else character for character in text
    )
