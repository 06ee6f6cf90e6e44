"""The differences between the desired and the deployed job: by task, cluster, field, parameter and game. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from demux.core.names import names_of
from demux.core.secrets import is_reference, is_secret_option
from demux.core.text import first_few
from install_workflow.databricks.jobs.compute import is_serverless
from install_workflow.databricks.jobs.job import Permission
from install_workflow.databricks.jobs.task_arguments import AS_KEY, AS_NAME, engine_of, options, parse_task_games

# by game: part and task that it runs in
Places = Mapping[str, tuple[str, str]]

_LISTED = frozenset({"tasks", "job_clusters", "environments"})
# who gives out credentials, which are none
_NO_SECRETS = frozenset({"store.credentials"})
SERVERLESS = "serverless compute"
_PARAMETERS = "python_wheel_task.parameters"


class DifferenceKind(Enum):
    """The kind of a difference."""

    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Detail:
    """One difference within a job.

    Attributes:
        subject: what differs, such as `task deserialize_chess`, `cluster cluster_001`, `job` or `group analysts`.
        field: the field of the subject, such as `python_wheel_task.package_name` or `parameter games.limit`; "" = the
            subject as a whole.
        before: as it is now, JSON; None = it is not there. What looks like a secret is `***`.
        after: as it should be, JSON; None = it should not be there.
        reason: why, where that is known; "" otherwise.
    """

    difference: DifferenceKind
    subject: str
    field: str = ""
    before: Any = None
    after: Any = None
    reason: str = ""


def games_of(key: str, task: Mapping[str, Any]) -> dict[str, str]:
    """Return the games in the task's parameters, each by its name or by its key; by the game's key."""
    games = parse_task_games(key, task)
    named = {names_of(name).key: name for name in games.names}
    return {**named, **{each: named.get(each, each) for each in (*games.keys, *games.odd)}}


def places(tasks: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, tuple[str, str]]:
    """Return where each game runs, by the game's key.

    Args:
        tasks: part, and tasks by key from `comparable`, of each job.
    """
    return {game: (part, key) for part, by_key in tasks for key, task in by_key.items() for game in games_of(key, task)}


def settings_details(
    part: str, before: Mapping[str, Any], after: Mapping[str, Any], were: Places, will_be: Places
) -> Iterator[Detail]:
    """Yield the differences in the settings: tasks first, then clusters and environments, then the job's own fields.

    Args:
        before: the settings as they are, from `comparable`.
        after: the settings as they should be, from `comparable`.
    """
    yield from task_details(part, before, after, were, will_be)
    clusters = before.get("job_clusters", {}), after.get("job_clusters", {})
    for key in sorted({*clusters[0], *clusters[1]}):
        yield from _compare_definitions(f"cluster {key}", "new_cluster", clusters[0].get(key), clusters[1].get(key))
    environments = before.get("environments", {}), after.get("environments", {})
    for key in sorted({*environments[0], *environments[1]}):
        yield from _compare_definitions(
            f"environment {key}", "spec", environments[0].get(key), environments[1].get(key)
        )
    rest = [{field: value for field, value in side.items() if field not in _LISTED} for side in (before, after)]
    yield from _fields("job", "", rest[0], rest[1])


def task_details(
    part: str, before: Mapping[str, Any], after: Mapping[str, Any], were: Places, will_be: Places
) -> Iterator[Detail]:
    """Yield the differences in the tasks, by key; the arguments are those of `settings_details`."""
    old, new = before.get("tasks", {}), after.get("tasks", {})
    for key in sorted({*old, *new}):
        yield from _task(part, key, old.get(key), new.get(key), were, will_be)


def permission_details(before: Sequence[Permission], after: Sequence[Permission]) -> Iterator[Detail]:
    """Yield the differences in the permissions."""
    old, new = ({(each.kind, each.principal): each.level.value for each in side} for side in (before, after))
    for kind, principal in sorted({*old, *new}, key=lambda who: (who[0].value, who[1])):
        levels = old.get((kind, principal)), new.get((kind, principal))
        if levels[0] != levels[1]:
            subject = f"{kind.value.removesuffix('_name').replace('_', ' ')} {principal}"
            yield Detail(_kind(*levels), subject, "permission", *levels)


def _task(
    part: str,
    key: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    were: Places,
    will_be: Places,
) -> Iterator[Detail]:
    subject = f"task {key}"
    if before is None and after is not None:
        yield Detail(DifferenceKind.ADDED, subject, after=_brief(key, after), reason=_came(part, key, after, were))
    elif after is None and before is not None:
        yield Detail(
            DifferenceKind.REMOVED, subject, before=_brief(key, before), reason=_went(part, key, before, will_be)
        )
    elif before is not None and after is not None and before != after:
        yield from _games(part, key, before, after, were, will_be)
        yield from _fields(subject, "", before, after)


def _came(part: str, key: str, task: Mapping[str, Any], were: Places) -> str:
    """Return why a task is new: its games are, or they come from another task."""
    return _why(part, key, [*games_of(key, task)], were, ("new task", "new game"), "moved from")


def _went(part: str, key: str, task: Mapping[str, Any], will_be: Places) -> str:
    return _why(part, key, [*games_of(key, task)], will_be, ("not in the plan any more", "game retired"), "moved to")


def _why(part: str, key: str, games: Sequence[str], others: Places, words: tuple[str, str], moved: str) -> str:
    if not games:
        return words[0]
    found = sorted({others[game] for game in games if game in others})
    if not found:
        return words[1]
    return f"{moved} {first_few([_place(part, key, place) for place in found])}"


def _place(part: str, key: str, place: tuple[str, str]) -> str:
    task = "" if place[1] == key else f"task {place[1]}"
    # a job that has lost its tag is of no part
    job = "" if place[0] == part else f"part {place[0]}" if place[0] else "a job of no part"
    return " of ".join(filter(None, (task, job))) or "the same task"


def _games(
    part: str, key: str, before: Mapping[str, Any], after: Mapping[str, Any], were: Places, will_be: Places
) -> Iterator[Detail]:
    """Yield the games that a task gains and loses while it stays."""
    old, new = games_of(key, before), games_of(key, after)
    for game in sorted(new.keys() - old.keys()):
        reason = _why(part, key, (game,), were, ("", "new game"), "moved from")
        yield Detail(DifferenceKind.ADDED, f"task {key}", "game", after=new[game], reason=reason)
    for game in sorted(old.keys() - new.keys()):
        reason = _why(part, key, (game,), will_be, ("", "game retired"), "moved to")
        yield Detail(DifferenceKind.REMOVED, f"task {key}", "game", before=old[game], reason=reason)
    for game in sorted(each for each in old.keys() & new.keys() if old[each] != new[each]):
        yield Detail(DifferenceKind.CHANGED, f"task {key}", "game", old[game], new[game], "named another way")


def _compare_definitions(
    subject: str, inner: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Iterator[Detail]:
    """Yield the differences in a cluster or an environment; its fields are in the object `inner`."""
    if before is None or after is None:
        yield Detail(DifferenceKind.ADDED if before is None else DifferenceKind.REMOVED, subject)
    else:
        yield from _fields(subject, "", before.get(inner, before), after.get(inner, after))


def _fields(subject: str, path: str, before: Any, after: Any) -> Iterator[Detail]:
    """Yield the innermost fields that differ."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for field in sorted({*before, *after}):
            inner = f"{path}.{field}" if path else field
            yield from _fields(subject, inner, before.get(field), after.get(field))
    elif path == "job_cluster_key" and before and after:
        yield Detail(DifferenceKind.MOVED, subject, path, before, after)
    elif not isinstance(before, list) or not isinstance(after, list):
        yield Detail(_kind(before, after), subject, path, _shown(path, before), _shown(path, after))
    elif path == _PARAMETERS:
        yield from _parameters(subject, path, before, after)
    else:
        yield from _entries(subject, path, before, after)


def _entries(subject: str, path: str, before: list[Any], after: list[Any]) -> Iterator[Detail]:
    """Yield the entries of a list that come and go; one for one is a change."""
    gone = [_shown(path, entry) for entry in before if entry not in after]
    new = [_shown(path, entry) for entry in after if entry not in before]
    if not gone and not new:
        yield Detail(DifferenceKind.CHANGED, subject, path, reason="another order")
    elif len(gone) == len(new) == 1:
        yield Detail(DifferenceKind.CHANGED, subject, path, gone[0], new[0])
    else:
        yield from (Detail(DifferenceKind.REMOVED, subject, path, before=entry) for entry in gone)
        yield from (Detail(DifferenceKind.ADDED, subject, path, after=entry) for entry in new)


def _parameters(subject: str, path: str, before: list[str], after: list[str]) -> Iterator[Detail]:
    old, new = options(before), options(after)
    if old == new:
        yield Detail(DifferenceKind.CHANGED, subject, path, reason="another order")
    for name in sorted({*old, *new} - {AS_NAME, AS_KEY}):
        if old.get(name) != new.get(name):
            values = [None if side is None else ", ".join(side) for side in (old.get(name), new.get(name))]
            shown = [_shown(name, value) for value in values]
            yield Detail(_kind(*values), subject, f"parameter {name}".rstrip(), *shown)


def _brief(key: str, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return games, engine and cluster of a task that is added or removed."""
    known = {
        "games": [*games_of(key, task).values()],
        "engine": engine_of(key, task),
        "cluster": SERVERLESS if is_serverless(task) else task.get("job_cluster_key"),
    }
    return {name: value for name, value in known.items() if value}


def _kind(before: object, after: object) -> DifferenceKind:
    if before is None:
        return DifferenceKind.ADDED
    return DifferenceKind.REMOVED if after is None else DifferenceKind.CHANGED


def _shown(path: str, value: Any) -> Any:
    """Return the value without what looks like a secret: a job that was edited by hand may have one."""
    if isinstance(value, Mapping):
        return {field: _shown(field, inner) for field, inner in value.items()}
    if isinstance(value, list):
        return [_shown(path, inner) for inner in value]
    if isinstance(value, str) and path not in _NO_SECRETS and is_secret_option(path) and not is_reference(value):
        return value if value.startswith("{{secrets/") else "***"
    return value
