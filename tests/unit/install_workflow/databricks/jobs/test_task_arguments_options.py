"""A task's parameters as options."""

from __future__ import annotations

import pytest

from install_workflow.databricks.jobs.task_arguments import options, options_of


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ([], {}),
        (["deserialize", "--game", "chess"], {"": ("deserialize",), "game": ("chess",)}),
        (["--game=chess", "--game", "go"], {"game": ("chess", "go")}),
        (["--set", "games.limit=5", "--set=run.decoder=arrow"], {"games.limit": ("5",), "run.decoder": ("arrow",)}),
        (["--once", "--game", "chess"], {"once": ("",), "game": ("chess",)}),
        (["--game", "a=b"], {"game": ("a=b",)}),
        (["--set", "kafka.options.x=a=b"], {"kafka.options.x": ("a=b",)}),
        (["--last"], {"last": ("",)}),
    ],
)
def test_options_are_read_as_the_command_line_does(parameters: list[str], expected: dict[str, tuple[str, ...]]) -> None:
    assert options(parameters) == expected


def test_a_tasks_named_parameters_are_options_as_well() -> None:
    wheel = {"parameters": ["deserialize", "--game=go"], "named_parameters": {"game": "chess", "decoder": "arrow"}}
    expected = {"": ("deserialize",), "game": ("chess",), "decoder": ("arrow",)}
    assert options_of({"python_wheel_task": wheel}) == expected
    assert options_of({"notebook_task": {}}) == {}
