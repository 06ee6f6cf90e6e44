"""Subjects that the settings name and no registry has: such a setting can never apply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from difflib import get_close_matches

from demux.core.errors import DemuxError
from demux.core.schemas.registry_selection import DEFAULT, Registries, registry_name_for, registry_settings
from demux.core.settings.settings import Settings


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
        named[registry_name_for(game, settings)] += [(f"games.subjects_of.{game}", subject) for subject in subjects]
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
