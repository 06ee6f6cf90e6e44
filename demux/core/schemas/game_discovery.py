"""Which games the registries name by their subjects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from demux.core.errors import DemuxError
from demux.core.names import invalid_reason
from demux.core.schemas.registry_selection import DEFAULT, Registries, registry_name_for
from demux.core.settings.games import games_named
from demux.core.settings.settings import GameRegistrySettings, Settings


@dataclass(frozen=True, slots=True)
class RegisteredGames:
    """The games that subjects name; empty where they were not asked for (`games.subjects`).

    Attributes:
        left_out: those that cannot, each with the sentence why, by name.
    """

    games: frozenset[str] = frozenset()
    left_out: tuple[tuple[str, str], ...] = ()


def registered_games(settings: Settings, registries: Registries) -> RegisteredGames:
    """Return the games that `games.subjects` finds, each in the registry that has the game's schemas.

    Asks each registry once for its list of subjects, and none without `games.subjects`.

    Raises:
        RegistryUnavailable, RegistryRefused, SchemaInvalid: as `SchemaRegistry.subjects`.
        SecretMissing, SettingsInvalid: as `open_registry`.
    """
    if settings.games.subjects is None:
        return RegisteredGames()
    named: set[str] = set()
    for registry in _asked(settings.registries):
        found = games_named(settings.games.subjects, registries.of(registry).subjects())
        named |= {game for game in found if registry_name_for(game, settings.registries) == registry}
    reasons = {game: invalid_reason(game, settings.games.max_name_bytes) for game in named}
    left_out = tuple((game, reason) for game, reason in sorted(reasons.items()) if reason)
    return RegisteredGames(frozenset(game for game, reason in reasons.items() if not reason), left_out)


def _asked(registries: Mapping[str, GameRegistrySettings]) -> tuple[str, ...]:
    # where a pattern takes every game, there may be no other registry at all
    takes_all = any("*" in registry.games for registry in registries.values())
    return (*(() if takes_all else (DEFAULT,)), *registries)


def registered_if_asked(settings: Settings, registries: Registries, warn: Callable[[str], None]) -> RegisteredGames:
    """Return the games that the registries name; none, and a warning, where a registry cannot be asked."""
    try:
        return registered_games(settings, registries)
    except DemuxError as error:
        logging.getLogger("demux").warning("games.subjects: %s", error)
        warn(f"Games that only the registry has are left out: {error.message}")
        return RegisteredGames()
