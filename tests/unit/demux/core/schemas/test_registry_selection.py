from __future__ import annotations

import threading
from pathlib import Path

import pytest

from demux.core.errors import SecretMissing, SettingsInvalid
from demux.core.registry.confluent.registry import ConfluentRegistry
from demux.core.registry.folder import FolderRegistry
from demux.core.schemas.registry_selection import Registries, open_registry, registry_name_for
from demux.core.settings.settings import Settings
from tests.fakes.registry_server import FakeRegistry, serving


def settings(**more: object) -> Settings:
    return Settings.model_validate(more)


def test_a_game_takes_the_first_registry_with_a_pattern_that_suits_its_name() -> None:
    several = settings(
        registries={
            "board": {"games": ["chess", "go-*"], "path": "a"},
            "all-go": {"games": ["go*"], "path": "b"},
            "odd": {"games": ["[x]"], "path": "c"},
        }
    )
    names = {
        game: registry_name_for(game, several.registries)
        for game in ("chess", "Chess", "go-9x9", "go", "[x]", "x", "poker")
    }
    assert names == {
        "chess": "board",
        "Chess": "default",
        "go-9x9": "board",
        "go": "all-go",
        "[x]": "default",
        "x": "odd",
        "poker": "default",
    }


def test_without_a_url_it_is_a_folder(tmp_path: Path) -> None:
    own = settings(root=str(tmp_path), registries={"more": {"games": ["x"], "path": str(tmp_path / "more")}})
    for name in ("default", "more"):
        registry = open_registry(own, name, made_by="me", environ={})
        assert isinstance(registry, FolderRegistry)
        registry.register(name, 'syntax = "proto3"; message M {}', "m.proto", ())
    assert (tmp_path / "registry" / "registry.yml").exists()
    assert (tmp_path / "more" / "registry.yml").exists()


def test_with_a_url_it_is_asked_over_http_with_the_secrets_of_its_section() -> None:
    with serving(FakeRegistry()) as fake:
        fake.account = "Bearer t0k"
        own = settings(registry={"url": fake.url, "token": "secret:env/TOKEN"})
        registry = open_registry(own, environ={"TOKEN": "t0k"})
        assert isinstance(registry, ConfluentRegistry)
        assert registry.subjects() == ()
        with pytest.raises(SecretMissing):
            open_registry(own, environ={})


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(SettingsInvalid, match=r"no registry 'x'\. Use one of: default, more\."):
        open_registry(settings(registries={"more": {"games": ["y"]}}), "x", environ={})


def test_each_registry_is_opened_when_asked_for_and_once(tmp_path: Path) -> None:
    own = settings(
        root=str(tmp_path),
        registries={"closed": {"games": ["x"], "url": "http://127.0.0.1:1", "password": "secret:env/NONE"}},
    )
    registries = Registries(own, {})
    opened: set[int] = set()
    threads = [threading.Thread(target=lambda: opened.add(id(registries.of("default")))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == {id(registries.of("default"))}
    with pytest.raises(SecretMissing):
        registries.of("closed")
