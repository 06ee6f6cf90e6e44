"""Which registry a game's schemas are in, and the registries of the settings, each opened once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from fnmatch import fnmatchcase

from demux.core.errors import SettingsInvalid
from demux.core.registry.folder import FolderRegistry
from demux.core.registry.protocol import ErasableRegistry
from demux.core.root.layout import storage_for
from demux.core.schemas.subject_choice import GameSchemas
from demux.core.settings.settings import RegistrySettings, Settings
from demux.core.settings.subject_pattern import SubjectRule

DEFAULT = "default"


def registry_name_for(game: str, settings: Settings) -> str:
    """Return the name of the first registry with a pattern that the game's name suits, else `default`."""
    for name, registry in settings.registries.items():
        if any(fnmatchcase(game, pattern) for pattern in registry.games):
            return name
    return DEFAULT


def game_schemas(game: str, settings: Settings) -> GameSchemas:
    """Return where the game's schemas are, and which of them are the game's, by the settings."""
    name = registry_name_for(game, settings)
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
        settings: all settings.
        name: `default`, or a key of `registries`.
        made_by: the mark on what is registered through it.
        environ: where `secret:env/NAME` is looked up.

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
