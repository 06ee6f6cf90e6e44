"""Which registry a game's schemas are in, and which games the registries name.

The registries of the settings are each opened once.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from demux.core.errors import DemuxError, SettingsInvalid
from demux.core.names import invalid_reason
from demux.core.registry.folder import FolderRegistry
from demux.core.registry.protocol import ErasableRegistry
from demux.core.root.layout import storage_for
from demux.core.schemas.subject_choice import GameSchemas
from demux.core.settings.games import SubjectRule, games_named
from demux.core.settings.settings import GameRegistrySettings, RegistrySettings, Settings

DEFAULT = "default"


def registry_name_for(game: str, registries: Mapping[str, GameRegistrySettings]) -> str:
    """Return the name of the first registry with a pattern that the game's name suits, else `default`."""
    for name, registry in registries.items():
        if any(fnmatchcase(game, pattern) for pattern in registry.games):
            return name
    return DEFAULT


def game_schemas(game: str, settings: Settings) -> GameSchemas:
    """Return where the game's schemas are, and which of them are the game's, by the settings."""
    name = registry_name_for(game, settings.registries)
    games = settings.games
    return GameSchemas(
        name, SubjectRule(game, games.subjects, games.subjects_of), registry_settings(settings, name).messages
    )


def registry_settings(settings: Settings, name: str) -> RegistrySettings:
    """Return the settings of the registry of this name; `default` is the section `registry`.

    Raises:
        SettingsInvalid: there is no such registry.
    """
    if name == DEFAULT:
        return settings.registry
    if name not in settings.registries:
        known = ", ".join((DEFAULT, *settings.registries))
        raise SettingsInvalid(f"There is no registry {name!r}.", f"Use one of: {known}.", registry=name)
    return settings.registries[name]


def open_registry(
    settings: Settings, name: str = DEFAULT, made_by: str | None = None, *, environ: Mapping[str, str]
) -> ErasableRegistry:
    """Return the registry of this name; resolves its secrets, and asks it nothing yet.

    Args:
        name: `default`, or a key of `registries`.

    Raises:
        SettingsInvalid: there is no such registry, or its certificate files cannot be used.
        SecretMissing: its password or token is not there.
    """
    section = registry_settings(settings, name)
    if section.url is None:
        return FolderRegistry(section.path or settings.under_root("registry"), made_by, storage_for(settings, environ))
    # a command that asks no registry needs no HTTP client
    from demux.core.registry.confluent.http_client import Rest
    from demux.core.registry.confluent.registry import ConfluentRegistry

    return ConfluentRegistry(Rest(section, environ), made_by)


class Registries:
    """The registries of the settings, each opened when it is asked for, and once. Safe to share between threads."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], made_by: str | None = None) -> None:
        self._settings = settings
        self._environ = environ
        self._made_by = made_by
        self._lock = threading.Lock()
        self._opened: dict[str, ErasableRegistry] = {}

    def of(self, name: str) -> ErasableRegistry:
        """Return the registry of this name; raises as `open_registry` does."""
        with self._lock:
            if name not in self._opened:
                self._opened[name] = open_registry(self._settings, name, self._made_by, environ=self._environ)
            return self._opened[name]


def unused_names(settings: Settings, registries: Registries) -> tuple[str, ...]:
    """Return a sentence for each subject in `messages` and `games.subjects_of` that its registry does not have.

    Asks each registry that settings name subjects of once; none without such settings. A registry that does not answer
    is passed over: rounds say so where they need it.
    """
    named: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for registry in (DEFAULT, *settings.registries):
        section = "registry" if registry == DEFAULT else f"registries.{registry}"
        messages = registry_settings(settings, registry).messages
        named[registry] += [(f"{section}.messages", subject) for subject in messages]
    for game, subjects in settings.games.subjects_of.items():
        named[registry_name_for(game, settings.registries)] += [
            (f"games.subjects_of.{game}", subject) for subject in subjects
        ]
    found: list[str] = []
    for registry, settings_of_it in named.items():
        if settings_of_it:
            try:
                there = registries.of(registry).subjects()
            except DemuxError:
                continue
            found += [_sentence(setting, name, there) for setting, name in settings_of_it if name not in there]
    return tuple(found)


def _sentence(setting: str, subject: str, subjects: Iterable[str]) -> str:
    near = get_close_matches(subject, subjects, n=1)
    hint = f"; the nearest name is {near[0]!r}" if near else ""
    return f"{setting} names the subject {subject!r}, which the registry does not have, so it never applies{hint}"


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


def list_registered_or_warn(settings: Settings, registries: Registries, warn: Callable[[str], None]) -> RegisteredGames:
    """Return the games that the registries name; none, and a warning, where a registry cannot be asked."""
    try:
        return registered_games(settings, registries)
    except DemuxError as error:
        logging.getLogger("demux").warning("games.subjects: %s", error)
        warn(f"Games that only the registry has are left out: {error.message}")
        return RegisteredGames()
