"""The arguments that give a task on a cluster the settings of this machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

from pydantic import BaseModel

from demux.core.errors import SettingsInvalid
from demux.core.names import MAX_NAME_BYTES, invalid_reason, is_key
from demux.core.settings.databricks.compute import Compute
from demux.core.settings.databricks.deployment import Granularity
from demux.core.settings.databricks.values import is_remote
from demux.core.settings.maintenance import MaintainSettings
from demux.core.settings.settings import Engine, Settings
from demux.core.settings.store import CredentialSource, takes_unity_catalog
from install_workflow.databricks.jobs.job import wheel_folder
from install_workflow.databricks.jobs.oversized_settings import (
    ROOM_BESIDE_GAMES,
    ROOM_FOR_SETTINGS,
    STAYING,
    SettingsFile,
    file_of,
    too_long,
)

# what the workspace replaces in the text of a job ({{...}}), or in that of a bundle (${...})
_REPLACED = ("{{", "${")
_TABLES = ("root", "store", "tables")
_INGEST = (
    *_TABLES,
    "source",
    "kafka",
    "archive",
    "wrapper",
    "framing",
    "games.max_name_bytes",
    "run.sink",
)
_DESERIALIZE = (
    *_TABLES,
    "registry",
    "registries",
    "games.schema_changes",
    "games.schema_changes_of",
    "games.frozen",
    "decoder",
    "run.engine",
    "run.parallelism",
    "run.retries",
    "run.retry_wait_s",
)
# how often it happens is the schedule's
_MAINTAIN = (
    *_TABLES,
    *(f"maintain.{name}" for name in MaintainSettings.model_fields if name != "every"),
    "run.parallelism",
)
# a stream has no use for these, so that they change none of its tasks
_FLEET = ("run.rows_per_game", "run.sink")


@dataclass(frozen=True, slots=True)
class TaskArguments:
    """The arguments of each command: `--settings FILE` where something is too long, `--set KEY=VALUE …`, sorted by key.

    A stage gets the settings that it reads, so that a setting of another stage, or of the plan alone, changes no task.

    Attributes:
        files: the files that they name, of those commands that the jobs have.
    """

    ingest: tuple[str, ...]
    deserialize: tuple[str, ...]
    apply: tuple[str, ...]
    maintain: tuple[str, ...]
    files: tuple[SettingsFile, ...] = ()


def arguments(settings: Settings) -> TaskArguments:
    """Return each command's arguments for the settings that are not the default.

    Raises:
        SettingsInvalid: a path that no cluster reaches, or a value that the workspace would replace.
        PlanRefused: they are more than a file may have.
    """
    values, databricks = _of_tasks(settings), settings.databricks
    folder = wheel_folder(databricks.wheel_path or "", databricks.name or "")
    beside_games = {Granularity.GAME: ROOM_FOR_SETTINGS, Granularity.CLUSTER: ROOM_BESIDE_GAMES}
    # a cluster has a session of its own
    everything = tuple(name for name in Settings.model_fields if name != "spark")
    ingest, ingest_files = _options_or_file(values, _INGEST, folder, ROOM_FOR_SETTINGS)
    sections = (*_DESERIALIZE, *(_FLEET if settings.task_engine is Engine.FLEET else ()))
    deserialize, deserialize_files = _options_or_file(values, sections, folder, beside_games[settings.granularity])
    apply, apply_files = _options_or_file(values, everything, folder, ROOM_FOR_SETTINGS)
    maintain, maintain_files = _options_or_file(values, _MAINTAIN, folder, ROOM_FOR_SETTINGS)
    files = (
        *ingest_files,
        *deserialize_files,
        *(apply_files if databricks.auto_apply else ()),
        *(maintain_files if settings.maintain.interval is not None else ()),
    )
    return TaskArguments(ingest, deserialize, apply, maintain, tuple({file.path: file for file in files}.values()))


def _of_tasks(settings: Settings) -> dict[str, object]:
    """Return the settings of the tasks: without our login, with credentials for a machine that has no identity."""
    values = {key: value for key, value in changed_values(settings).items() if not key.startswith("databricks.login.")}
    databricks = settings.databricks
    by_itself = databricks.compute_kind is Compute.DEDICATED or databricks.cluster.environment
    if not by_itself and takes_unity_catalog(settings.store, settings.root):
        values["store.credentials"] = CredentialSource.UNITY_CATALOG
    return dict(sorted(values.items()))


def changed_settings(settings: Settings) -> dict[str, str]:
    """Return every setting that is not the default as `--set` takes it, by dotted key, sorted.

    Raises:
        SettingsInvalid: a path that no cluster reaches.
    """
    return {key: _text(value) for key, value in changed_values(settings).items()}


def changed_values(settings: Settings) -> dict[str, object]:
    """Return every setting that is not the default, by dotted key, sorted.

    Raises:
        SettingsInvalid: a path that no cluster reaches.
    """
    _require_remote(settings)
    # the command line writes down what these are by default
    implied = {"source.path": settings.under_root("source"), "registry.path": settings.under_root("registry")}
    leaves = dict(_leaves(settings, Settings(), ""))
    return {key: leaves[key] for key in sorted(leaves) if key not in implied or leaves[key] != implied[key]}


def is_replaced(text: str) -> bool:
    """Return whether the text of a job would not reach the task as it is."""
    return any(mark in text for mark in _REPLACED)


def _leaves(given: BaseModel, default: BaseModel, above: str) -> Iterator[tuple[str, object]]:
    for name in type(given).model_fields:
        value, usual = getattr(given, name), getattr(default, name)
        if isinstance(usual, BaseModel):
            yield from _leaves(value, usual, f"{above}{name}.")
        elif value != usual:
            yield f"{above}{name}", value


def _text(value: object) -> str:
    match value:
        case None:
            return "null"
        case str():
            return value
        case Enum():
            return str(value.value)
        case bool():
            return str(value).lower()
        case Mapping() | tuple():
            return _flow(value)
        case _:
            return str(value)


def _flow(value: object) -> str:
    """The value as YAML in one line."""
    match value:
        case BaseModel():
            return _flow({name: each for name, each in value if each != type(value).model_fields[name].default})
        case Mapping():
            return "{" + ", ".join(f"{_flow(key)}: {_flow(value[key])}" for key in _in_order(value)) + "}"
        case tuple():
            return f"[{', '.join(_flow(item) for item in value)}]"
        case None:
            return "null"
        case _:
            return '"' + "".join(_escaped(character) for character in _text(value)) + '"'


def _in_order(value: Mapping[str, object]) -> Iterable[str]:
    # of sections with names of their own, the first that suits a game is the game's
    return value if any(isinstance(each, BaseModel) for each in value.values()) else sorted(value)


def _escaped(character: str) -> str:
    if character.isascii() and character.isprintable() and character not in '"\\${':
        return character
    return f"\\u{ord(character):04x}" if character <= "\uffff" else f"\\U{ord(character):08x}"


def _options_or_file(
    values: Mapping[str, object], sections: tuple[str, ...], folder: str, room: int
) -> tuple[tuple[str, ...], tuple[SettingsFile, ...]]:
    """Return the options of a command, and the file that they name if they do."""
    inside = tuple(f"{name}." for name in sections)
    texts = {key: _text(value) for key, value in values.items() if key in sections or key.startswith(inside)}
    beyond = tuple(key for key, text in texts.items() if not text.isascii() and key not in STAYING)
    moved = (*beyond, *too_long({key: text for key, text in texts.items() if key not in beyond}, room))
    files = (file_of(_document({key: values[key] for key in moved}), folder),) if moved else ()
    options = _options({key: text for key, text in texts.items() if key not in moved})
    return (*(part for file in files for part in ("--settings", file.path)), *options), files


def _document(values: Mapping[str, object]) -> str:
    """The settings as a file, a line for each section."""
    sections: dict[str, object] = reduce(_put_setting, values.items(), {})
    return "".join(f"{name}: {_flow(sections[name])}\n" for name in sorted(sections))


def _put_setting(sections: dict[str, object], setting: tuple[str, object]) -> dict[str, object]:
    name, _, rest = setting[0].partition(".")
    below = sections.get(name, {})
    value = _put_setting(dict(below), (rest, setting[1])) if rest and isinstance(below, Mapping) else setting[1]
    return {**sections, name: value}


def _options(values: Mapping[str, str]) -> tuple[str, ...]:
    if replaced := [key for key, text in values.items() if is_replaced(f"{key}={text}")]:
        raise SettingsInvalid(
            f"{', '.join(replaced)}: a workspace would replace the expression {{{{…}}}} or ${{…}}.",
            "Write it another way, or move it into a file that the settings name.",
            keys=tuple(replaced),
        )
    return tuple(part for key, text in values.items() for part in ("--set", f"{key}={text}"))


def _require_remote(settings: Settings) -> None:
    wrong = [
        *(f"{key}: {place!r}" for key, place in _tables(settings) if not is_remote(place)),
        *(
            f"{key}: {place!r}"
            for key, place in _files(settings)
            if not is_remote(place) and not place.startswith("/Workspace/")
        ),
    ]
    if wrong:
        raise SettingsInvalid(
            f"No cluster of a workspace reaches {', '.join(wrong)}.",
            "Name a URI of cloud storage or a folder below /Volumes; files may be below /Workspace as well.",
            places=tuple(wrong),
        )


def _tables(settings: Settings) -> Iterable[tuple[str, str]]:
    archive = settings.archive
    places = (
        ("root", settings.root),
        ("source.path", settings.source.path),
        ("archive.path", archive.path),
        ("archive.clean_path", archive.clean_path),
    )
    return [(key, place) for key, place in places if place is not None]


def _files(settings: Settings) -> Iterable[tuple[str, str]]:
    kafka = settings.kafka
    registries = {"registry": settings.registry, **{f"registries.{k}": v for k, v in settings.registries.items()}}
    places = [
        ("wrapper.proto", settings.wrapper.proto),
        ("kafka.truststore", kafka.truststore),
        ("kafka.keystore", kafka.keystore),
    ]
    for name, registry in sorted(registries.items()):
        places += [
            (f"{name}.path", registry.path),
            (f"{name}.ca_file", registry.ca_file),
            (f"{name}.certificate_file", registry.certificate_file),
            (f"{name}.key_file", registry.key_file),
        ]
    return [(key, place) for key, place in places if place is not None]


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


DESERIALIZE = "deserialize_"
# a name that the workspace would change on its way is given by its key
AS_NAME, AS_KEY = "game", "game-key"
_ENGINE = "run.engine"


@dataclass(frozen=True, slots=True)
class TaskGames:
    """The games of a task, each list in the task's order.

    Attributes:
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
