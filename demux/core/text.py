"""Text for people: what comes from outside made safe for a terminal, long lists cut short, things counted."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str) -> str:
    r"""Return the text with every invisible character but the space written as `\uXXXX` or `\UXXXXXXXX`."""
    return "".join(map(_shown, text))


def first_few(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def count_text(count: int, word: str) -> str:
    """Return how many there are, such as `1 game` or `2,000 games`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def duration_text(seconds: float) -> str:
    """Return how long a time is, in the unit that suits it, such as `850 ms`, `1.4 s`, `12 min`, `3.4 h` or `9 d`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    for unit, length, most in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        amount = seconds / length
        if amount < most:
            return f"{amount:.1f}".removesuffix(".0") + f" {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
