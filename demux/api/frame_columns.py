"""Checks of the columns that a call names. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from demux.core.errors import ArgumentInvalid
from demux.core.settings.source import WrapperFraming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def place_of_column(frame: DataFrame, name: str, *types: str) -> int:
    """Return the place of a column of one of these types, by their names in SQL; without names of any type.

    Raises:
        ArgumentInvalid: there is no such column, there are two, or it is of another type.
    """
    indexes = [at for at, one in enumerate(frame.columns) if one == name]
    indexes = indexes or [at for at, one in enumerate(frame.columns) if one.lower() == name.lower()]
    if len(indexes) != 1:
        near = get_close_matches(name, frame.columns, n=1)
        lack = f"{len(indexes)} columns" if indexes else "no column"
        raise ArgumentInvalid(
            f"The frame has {lack} {name!r}.",
            f"The nearest name is {near[0]!r}."
            if near and not indexes
            else "Select the column under a name of its own.",
            column=name,
        )
    kind = frame.schema.fields[indexes[0]].dataType.simpleString()
    if types and kind not in types:
        raise ArgumentInvalid(
            f"The column {name!r} is {kind.upper()}, not {types[-1].upper()}.",
            "Name another column, or cast it.",
            column=name,
            type=kind,
        )
    return indexes[0]


def require_free(names: Iterable[str], taken: frozenset[str]) -> None:
    """Check that the result has none of these columns twice; `taken` is in lower case.

    Raises:
        ArgumentInvalid: it has one.
    """
    seen = set(taken)
    for name in names:
        if name.lower() in seen:
            raise ArgumentInvalid(
                f"The result would have two columns {name!r}.",
                "Give the new one another name (`into`, `quarantine`, `rescued`), or drop the other one.",
                column=name,
            )
        seen.add(name.lower())


def framing_of(framing: str | WrapperFraming) -> WrapperFraming:
    """Return the framing of this name.

    Raises:
        ArgumentInvalid: there is none.
    """
    try:
        return WrapperFraming(framing)
    except ValueError:
        raise ArgumentInvalid(
            f"There is no framing {framing!r}.", "Use 'bare' or 'confluent'.", framing=str(framing)
        ) from None
