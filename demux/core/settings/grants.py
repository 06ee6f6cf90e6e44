"""Settings of the grants: who may read which game's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from demux.core.settings.databricks import Principal
from demux.core.settings.types import Game, Section, Text


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("expected one principal or more")
    return names


Principals = Annotated[tuple[Principal, ...], AfterValidator(_some)]


class GrantsSettings(Section):
    """Who may read which game's table in Unity Catalog; entries of a game add up."""

    games: Mapping[Game, Principals] = Field(
        default={},
        description="Who may read a game's table, {exact name: [principal]}: groups, e-mail addresses of users, "
        "application ids of service principals. `demux grants apply` gives them SELECT, and nothing on bronze.",
    )
    patterns: Mapping[Text, Principals] = Field(
        default={},
        description="The same for all games whose name suits a glob pattern, {pattern: [principal]}, such as "
        "{'puzzle_*': [puzzle-team]}. A part of its own, as a name may have such characters as well.",
    )
