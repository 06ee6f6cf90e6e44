"""Figures that have a bar, and whether it was reached; as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure.

    Attributes:
        what: it measures.
        of: what it was computed from, for people.
        figure: its value.
        most: the bar, where less is better.
        least: the bar, where more is better.
        unit: of the figure.
    """

    what: str
    of: str
    figure: float
    most: float | None = None
    least: float | None = None
    unit: str = ""

    @property
    def is_reached(self) -> bool | None:
        """Whether the bar was reached; None where there is none."""
        if self.most is not None:
            return self.figure <= self.most
        return None if self.least is None else self.figure >= self.least


def lines(bars: Iterable[Bar]) -> list[str]:
    """Return the table."""
    return ["| what | measured | figure | bar | reached |", "| --- | --- | ---: | ---: | --- |", *map(_line, bars)]


def _line(bar: Bar) -> str:
    asked = (
        f"{bar.most:g}{bar.unit} at most"
        if bar.most is not None
        else f"{bar.least:g}{bar.unit} at least"
        if bar.least is not None
        else ""
    )
    reached = {True: "yes", False: "**no**", None: ""}[bar.is_reached]
    return f"| {bar.what} | {bar.of} | {bar.figure:.2f}{bar.unit} | {asked} | {reached} |"
