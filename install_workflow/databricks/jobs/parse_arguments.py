"""The parameters of a task, taken apart as a command line. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def options(parameters: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each option, in order; `--set KEY=VALUE` counts as the option KEY; "" = what is no option.

    `--name value` and `--name=value` are the same; an option without a value has "".
    """
    result: dict[str, tuple[str, ...]] = {}
    waiting = list(parameters)
    while waiting:
        name, value = _next(waiting)
        if name == "set":
            name, _, value = value.partition("=")
        result[name] = (*result.get(name, ()), value)
    return result


def options_of(task: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the options of a task of the Jobs API that runs a wheel, named parameters too; {} for another task."""
    wheel = task.get("python_wheel_task", {})
    named = {name: (value,) for name, value in wheel.get("named_parameters", {}).items()}
    return {**options(wheel.get("parameters", ())), **named}


def _next(waiting: list[str]) -> tuple[str, str]:
    """Return the next option and its value, taken off the list."""
    word = waiting.pop(0)
    if not word.startswith("--"):
        return "", word
    name, given, value = word[2:].partition("=")
    if not given and waiting and not waiting[0].startswith("--"):
        value = waiting.pop(0)
    return name, value
