"""Which games the registries name by their subjects."""

from __future__ import annotations

from pathlib import Path

import pytest

from demux.core.errors import RegistryUnavailable
from demux.core.registry.folder import FolderRegistry
from demux.core.schemas.registry_selection import RegisteredGames, Registries, registered_games
from demux.core.settings.settings import Settings
from tests.fakes.registry_server import FakeRegistry, serving

TEXT = 'syntax = "proto3"; message M {}'
SUBJECTS = "(?s)(?P<game>.+)-value"


def found(**sections: object) -> RegisteredGames:
    settings = Settings.model_validate({"games": {"subjects": SUBJECTS}, **sections})
    return registered_games(settings, Registries(settings, {}))


def folder(path: Path, *subjects: str) -> dict[str, str]:
    """The settings of a folder that has these subjects."""
    registry = FolderRegistry(path, made_by="test")
    for subject in subjects:
        registry.register(subject, TEXT, "m.proto", ())
    return {"path": str(path)}


def test_the_games_of_a_registry_over_http_are_found() -> None:
    with serving(FakeRegistry()) as fake:
        for subject in ("chess-value", "将棋-value", "chess-key", "common/types.proto"):
            fake.put(subject, {"schemaType": "PROTOBUF", "schema": TEXT})
        assert found(registry={"url": fake.url, "retries": 0}).games == {"chess", "将棋"}
        assert fake.asked == ["GET /subjects"]


def test_a_name_that_no_game_can_have_is_left_out_with_a_sentence() -> None:
    with serving(FakeRegistry()) as fake:
        for game in ("chess", "a\nb", "x" * 81, "__HIVE_DEFAULT_PARTITION__"):
            fake.put(f"{game}-value", {"schemaType": "PROTOBUF", "schema": TEXT})
        registered = found(registry={"url": fake.url, "retries": 0})
    assert registered.games == {"chess"}
    assert dict(registered.left_out) == {
        "__HIVE_DEFAULT_PARTITION__": "The game name is __HIVE_DEFAULT_PARTITION__, which means NULL in a folder name.",
        "a\nb": "The game name has a control character (U+000A) at position 2.",
        "x" * 81: "The game name has 81 bytes in UTF-8; at most 80 are allowed.",
    }


def test_a_game_counts_where_its_schemas_are(tmp_path: Path) -> None:
    default = folder(tmp_path / "default", "chess-value", "eu-go-value")
    eu = {**folder(tmp_path / "eu", "eu-ludo-value", "poker-value"), "games": ["eu-*"]}
    assert found(registry=default, registries={"eu": eu}).games == {"chess", "eu-ludo"}


def test_a_registry_that_no_game_takes_is_not_asked(tmp_path: Path) -> None:
    every = {**folder(tmp_path / "every", "chess-value"), "games": ["*"]}
    assert found(registry={"path": str(tmp_path / "none")}, registries={"every": every}).games == {"chess"}


def test_without_an_expression_nothing_is_asked(tmp_path: Path) -> None:
    assert found(games={}, registry={"path": str(tmp_path / "none")}) == RegisteredGames()


def test_a_registry_that_is_down_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RegistryUnavailable, match="cannot use"):
        found(registry={"path": str(tmp_path / "none")})
