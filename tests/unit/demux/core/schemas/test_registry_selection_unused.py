"""A subject that only the settings know is told before a round."""

from __future__ import annotations

from pathlib import Path

from demux.core.registry.folder import FolderRegistry
from demux.core.schemas.registry_selection import Registries, unused_names
from demux.core.settings.settings import Settings

TEXT = 'syntax = "proto3"; message M {}'


def unused(**sections: object) -> tuple[str, ...]:
    settings = Settings.model_validate(sections)
    return unused_names(settings, Registries(settings, {}))


def folder(path: Path, *subjects: str) -> dict[str, object]:
    registry = FolderRegistry(path, made_by="test")
    for subject in subjects:
        registry.register(subject, TEXT, "m.proto", ())
    return {"path": str(path)}


def test_each_subject_that_its_own_registry_lacks_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    default = folder(tmp_path / "default", "chess-value") | {"messages": {"chess-valeu": "M", "chess-value": "M"}}
    asia = folder(tmp_path / "asia", "go") | {"games": ["go*"], "messages": {"chess-value": "M"}}
    assert unused(
        registry=default, registries={"asia": asia}, games={"subjects_of": {"gomoku": ["go", "xo"], "ludo": ["go"]}}
    ) == (
        "registry.messages names the subject 'chess-valeu', which the registry does not have, so it never applies; the "
        "nearest name is 'chess-value'",
        "games.subjects_of.ludo names the subject 'go', which the registry does not have, so it never applies",
        "registries.asia.messages names the subject 'chess-value', which the registry does not have, so it never "
        "applies",
        "games.subjects_of.gomoku names the subject 'xo', which the registry does not have, so it never applies",
    )


def test_without_such_settings_no_registry_is_asked_and_one_that_is_not_there_is_passed_over(tmp_path: Path) -> None:
    nowhere = {"path": str(tmp_path / "no")}
    assert unused(registry=nowhere) == ()
    assert unused(registry=nowhere | {"messages": {"a": "M"}}) == ()
