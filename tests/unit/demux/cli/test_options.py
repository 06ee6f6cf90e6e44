"""A command declares the options of the function that does its work."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from demux.cli import commands
from demux.cli.app import loaded

# options of the settings and of the console
SHARED = {"decoder", "quiet"}


def declared() -> list[tuple[ast.FunctionDef, str]]:
    """Return each command that `runs` decorates, with the place of its work."""
    found = []
    for file in sorted(Path(commands.__path__[0]).glob("*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                for one in node.decorator_list:
                    match one:
                        case ast.Call(ast.Name("runs"), [ast.Constant(str() as work)]):
                            found.append((node, work))
    return found


def options_of(function: ast.FunctionDef) -> dict[str, str]:
    return {one.arg: ast.unparse(one.annotation) for one in function.args.args if one.annotation is not None}


@pytest.mark.parametrize(("command", "work"), declared(), ids=lambda one: one if isinstance(one, str) else one.name)
def test_the_work_of_a_command_takes_the_options_that_it_declares(command: ast.FunctionDef, work: str) -> None:
    module, _, name = work.partition(":")
    file = Path(commands.__path__[0]).parents[2] / f"{module.replace('.', '/')}.py"
    functions = [node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    (function,) = (node for node in functions if node.name == name)
    takes = options_of(function)
    assert takes.pop("settings") == "Settings"
    assert takes == {name: kind for name, kind in options_of(command).items() if name not in SHARED}
    assert len(command.body) == 1


def test_the_options_of_the_settings_come_behind_those_of_the_command() -> None:
    names = [one.name for one in loaded("deserialize").params]
    assert names[-3:] == ["settings_file", "root", "changes"]
    assert names[0] == "games"
