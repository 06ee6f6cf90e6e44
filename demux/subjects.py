"""Which games the subjects of a registry name, by an expression with a group `game`. Pure.

RE2 does the matching (by Arrow): its time grows with the text alone, whatever the expression is, as both come from
outside. So there are no back references and no look-arounds.
"""

from __future__ import annotations

from collections.abc import Iterable

GROUP = "game"
MAX_EXPRESSION = 500


def expression_mistake(expression: str) -> str | None:
    """Return what is wrong with an expression for subjects, as a part of a sentence; None when it can be used."""
    if len(expression) > MAX_EXPRESSION:
        return f"expected {MAX_EXPRESSION} characters or less"
    try:
        # alone first: what is wrapped must not close our brackets
        _names(expression, [""])
        found = _names(_whole(expression), [""])
    except ValueError as error:
        return f"expected a regular expression (RE2, other groups as (?:…)): {error}"
    return None if found is not None else f"expected one group (?P<{GROUP}>…) in it"


def games_named(expression: str, subjects: Iterable[str]) -> frozenset[str]:
    """Return the games that subjects name; a subject that the expression does not match as a whole names none.

    Args:
        expression: one without `expression_mistake`.
        subjects: as the registry has them.
    """
    # half of a surrogate pair has no UTF-8, and no wrapper can carry it
    texts = [subject for subject in subjects if subject.isascii() or _is_text(subject)]
    return frozenset(name for name in _names(_whole(expression), texts) or () if name)


def _whole(expression: str) -> str:
    return rf"\A(?:{expression})\z"


def _names(expression: str, texts: list[str]) -> list[str | None] | None:
    """Return what the group has in each text, None where the text does not match; None without such a group.

    Raises:
        ValueError: it is no expression of RE2.
    """
    # settings are read by every command, and few of them have such an expression
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.extract_regex(pa.array(texts, pa.string()), expression)
    if len(found.type.get_all_field_indices(GROUP)) != 1:
        return None
    names: list[str | None] = pc.if_else(found.is_valid(), pc.struct_field(found, GROUP), None).to_pylist()
    return names


def _is_text(subject: str) -> bool:
    try:
        subject.encode()
    except UnicodeEncodeError:
        return False
    return True
