"""Which games a task is told, whoever wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from demux.core.names import names_of
from install_workflow.databricks.diff.details import games_of
from install_workflow.databricks.jobs.task_arguments import TaskGames, engine_of, parse_task_games

KEY = names_of("{{job.id}}").key


def wheel(*parameters: str) -> dict[str, Any]:
    return {"python_wheel_task": {"parameters": list(parameters)}}


@pytest.mark.parametrize(
    ("key", "task", "expected"),
    [
        ("deserialize_x", wheel("deserialize", "--game=go", "--game", "将棋"), TaskGames(("go", "将棋"))),
        ("deserialize_x", wheel(f"--game-key={KEY}", "--game=go"), TaskGames(("go",), (KEY,))),
        ("deserialize_x", wheel("--game=", "--game-key=../x", "--game=go"), TaskGames(("go",), (), ("", "../x"))),
        ("deserialize_x", {"python_wheel_task": {"named_parameters": {"game": "go"}}}, TaskGames(("go",))),
        ("deserialize_x", {"notebook_task": {}}, TaskGames()),
        ("bronze", wheel("--game=go"), TaskGames()),
    ],
)
def test_a_task_is_told_names_and_keys(key: str, task: dict[str, Any], expected: TaskGames) -> None:
    assert parse_task_games(key, task) == expected


def test_a_difference_shows_what_no_game_can_be_called_too() -> None:
    assert games_of("deserialize_x", wheel("--game-key=../x", f"--game-key={KEY}", "--game=go")) == {
        "go": "go",
        KEY: KEY,
        "../x": "../x",
    }


def test_a_game_is_the_same_whether_a_task_has_its_name_or_its_key() -> None:
    key = names_of("将棋").key
    assert games_of("deserialize_x", wheel("--game=将棋")) == {key: "将棋"}
    assert games_of("deserialize_x", wheel(f"--game-key={key}")) == {key: key}


@pytest.mark.parametrize(
    ("key", "task", "engine"),
    [
        ("deserialize_x", wheel("deserialize", "--game=go"), "stream"),
        ("deserialize_x", wheel("deserialize", "--game=go", "--set", "run.engine=fleet"), "fleet"),
        (
            "deserialize_x",
            wheel("--game-key=" + KEY, "--set", "run.engine=stream", "--set", "run.engine=fleet"),
            "fleet",
        ),
        ("deserialize_x", wheel("deserialize", "--set", "run.engine=fleet"), None),
        ("bronze", wheel("--game=go", "--set", "run.engine=fleet"), None),
    ],
)
def test_a_task_with_games_has_the_engine_that_it_is_told_last(
    key: str, task: dict[str, Any], engine: str | None
) -> None:
    assert engine_of(key, task) == engine
