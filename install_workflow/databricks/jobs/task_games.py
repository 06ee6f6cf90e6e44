"""The games that the parameters of a task name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demux.core.names import MAX_NAME_BYTES, invalid_reason, is_key
from demux.core.settings.settings import Engine
from install_workflow.databricks.jobs.task_arguments import options_of

DESERIALIZE = "deserialize_"
# a name that the workspace would change on its way is given by its key
AS_NAME, AS_KEY = "game", "game-key"
_ENGINE = "run.engine"


@dataclass(frozen=True, slots=True)
class TaskGames:
    """The games of a task, each list in the task's order.

    Attributes:
        names: exact names.
        keys: keys of further games, in place of their names.
        odd: values written by hand that are no game's name or key.
    """

    names: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()


def parse_task_games(task_key: str, task: Mapping[str, Any]) -> TaskGames:
    """Return the games that the parameters of this task name; none where it does not deserialize."""
    if not task_key.startswith(DESERIALIZE):
        return TaskGames()
    given = options_of(task)
    names, keys = given.get(AS_NAME, ()), given.get(AS_KEY, ())
    odd_names = {name for name in names if invalid_reason(name, MAX_NAME_BYTES)}
    odd_keys = {key for key in keys if not is_key(key)}
    return TaskGames(
        tuple(name for name in names if name not in odd_names),
        tuple(key for key in keys if key not in odd_keys),
        (*sorted(odd_names), *sorted(odd_keys)),
    )


def engine_of(task_key: str, task: Mapping[str, Any]) -> str | None:
    """Return by which engine the task of this key decodes its games, by its parameters; None where it has no games."""
    games = parse_task_games(task_key, task)
    if not (games.names or games.keys or games.odd):
        return None
    return options_of(task).get(_ENGINE, (Engine.STREAM.value,))[-1]
