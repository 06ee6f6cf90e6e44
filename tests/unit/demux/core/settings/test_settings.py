"""The settings themselves: defaults, bounds and the paths made from them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from demux.core.settings.games import GamesSettings, Policy
from demux.core.settings.settings import Decoder, Engine, RunSettings, Settings, SparkSettings
from demux.core.settings.source import SourceSettings
from demux.core.settings.types import is_class_of


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, info in model.model_fields.items():
        yield name, info
        if is_class_of(info.annotation, BaseModel):
            yield from _fields(info.annotation)


def test_the_defaults_need_no_file() -> None:
    settings = Settings()
    assert (settings.root, settings.decoder, settings.games.policy) == ("demux-data", Decoder.AUTO, Policy.AUTO)
    assert (settings.games.limit, settings.games.max_name_bytes) == (1000, 80)
    assert (settings.run.parallelism, settings.run.retries, settings.run.retry_wait_s) == (2, 2, 1.0)
    assert (settings.spark.master, settings.spark.packages, settings.spark.conf) == ("local[*]", None, {})


def test_every_setting_is_described_and_has_a_default_that_is_valid() -> None:
    described = dict(_fields(Settings))
    assert [name for name, info in described.items() if not info.description or info.is_required()] == []
    assert Settings.model_validate(Settings().model_dump()) == Settings()


def test_a_game_is_pinned_to_a_cluster_with_a_plain_name_that_is_not_bronzes() -> None:
    pinned = {"将棋": "cluster_002", "chess": "big-games"}
    assert GamesSettings(pinned=pinned).pinned == pinned
    for cluster in ("", "Big", "a b", "1st", "x" * 41, "../etc", "größer"):
        with pytest.raises(ValidationError, match="pattern"):
            GamesSettings(pinned={"chess": cluster})
    with pytest.raises(ValidationError, match="bronze task"):
        GamesSettings(pinned={"chess": "bronze"})
    with pytest.raises(ValidationError, match="is empty"):
        GamesSettings(pinned={"": "big"})


def test_no_more_games_are_pinned_to_a_cluster_than_it_may_have() -> None:
    games = GamesSettings(pinned={"a": "big", "b": "big", "c": "other"})
    assert Settings(games=games, run=RunSettings(streams_per_cluster=2)).games == games
    with pytest.raises(ValidationError, match="puts more games on big than"):
        Settings(games=games, run=RunSettings(streams_per_cluster=1))


@pytest.mark.parametrize(
    ("root", "source", "registry"),
    [
        ("demux-data", "demux-data/source", "demux-data/registry"),
        ("/data/", "/data/source", "/data/registry"),
        ("/", "/source", "/registry"),
        ("s3://bucket/demux", "s3://bucket/demux/source", "s3://bucket/demux/registry"),
    ],
)
def test_source_and_registry_are_under_the_root_by_default(root: str, source: str, registry: str) -> None:
    settings = Settings(root=root)
    assert (settings.source_path, settings.registry_path) == (source, registry)


def test_a_path_that_is_given_is_used_as_it_is() -> None:
    assert Settings(source=SourceSettings(path="/in/wrappers")).source_path == "/in/wrappers"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().root = "elsewhere"


@pytest.mark.parametrize("root", ["", "  ", "~", "~/data", "a\nb", "a\x00"])
def test_a_root_that_would_surprise_is_refused(root: str) -> None:
    with pytest.raises(ValidationError):
        Settings(root=root)


def test_a_game_that_would_always_be_in_quarantine_cannot_be_allowed() -> None:
    with pytest.raises(ValidationError, match="The game name is empty"):
        GamesSettings(allow=("chess", ""))
    assert GamesSettings(allow=("../../etc", "将棋")).allow == ("../../etc", "将棋")


@pytest.mark.parametrize("memory", ["2", "2gb", "-1g", "g", "0g", "2g\n", "2 g"])
def test_a_driver_memory_that_java_would_not_take_is_refused(memory: str) -> None:
    with pytest.raises(ValidationError):
        SparkSettings(driver_memory=memory)


@pytest.mark.parametrize(
    ("engine", "decoder", "of_rounds", "of_tasks"),
    [
        ("auto", "auto", Engine.FLEET, Engine.STREAM),
        ("auto", "arrow", Engine.FLEET, Engine.STREAM),
        ("auto", "from_protobuf", Engine.STREAM, Engine.STREAM),
        ("stream", "auto", Engine.STREAM, Engine.STREAM),
        ("fleet", "auto", Engine.FLEET, Engine.FLEET),
    ],
)
def test_a_round_is_the_fleets_and_a_task_of_its_own_a_streams_unless_the_settings_say_more(
    engine: str, decoder: str, of_rounds: Engine, of_tasks: Engine
) -> None:
    settings = Settings.model_validate({"root": "data", "decoder": decoder, "run": {"engine": engine}})
    assert (settings.round_engine, settings.task_engine) == (of_rounds, of_tasks)
