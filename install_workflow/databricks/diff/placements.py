"""Where the jobs have each game, for the record of the deployment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from demux.core.control.deployment_record import GamePlacement, RecordedGame
from demux.core.names import names_of
from install_workflow.databricks.diff.changes import WorkspacePlan
from install_workflow.databricks.jobs.job import DeployedJob, JobJson
from install_workflow.databricks.jobs.task_games import parse_task_games

Places = tuple[GamePlacement, ...]
# by job id: what the server added to its settings
Filled = Mapping[int, JobJson]


@dataclass(frozen=True, slots=True)
class PlacementOutcome:
    """What the record says of the jobs after an apply.

    Attributes:
        places: where each game runs.
        filled: what the server added to each job, as far as that is known.
    """

    places: Places = ()
    filled: Filled = field(default_factory=dict)


def deployed_places(jobs: Iterable[DeployedJob], known: Iterable[str]) -> Places:
    """Return where the deployed jobs have each game, by key; where two have the same game, the lower id counts.

    Args:
        jobs: the jobs with the deployment's tag.
        known: names of games: a task may tell a game's key in place of its name.
    """
    return _places(((job.job_id, job.settings) for job in jobs), known)


def planned_places(plan: WorkspacePlan, ids: Mapping[str, int], known: Iterable[str]) -> Places:
    """Return where the jobs have each game once the plan is applied, by key.

    Args:
        plan: the plan.
        ids: the id of each part's job.
        known: as for `deployed_places`.
    """
    return _places(((ids[each.part], each.job.settings) for each in plan.changes if each.job is not None), known)


def recorded(places: Places, before: Iterable[RecordedGame], plan_id: str, now: datetime) -> tuple[RecordedGame, ...]:
    """Return the places with the plan that made them and the time, both as before where nothing changed."""
    stay = {game.place: game for game in before}
    return tuple(stay.get(place) or RecordedGame(place, plan_id, now) for place in places)


def _places(jobs: Iterable[tuple[int, JobJson]], known: Iterable[str]) -> Places:
    by_key = {names_of(game).key: game for game in known}
    found: dict[str, GamePlacement] = {}
    for job_id, settings in sorted(jobs, key=lambda job: job[0]):
        for task in settings.get("tasks", []):
            for key, game in _games(task):
                place = GamePlacement(
                    key,
                    game if game is not None else by_key.get(key),
                    str(settings.get("name", "")),
                    job_id,
                    str(task.get("task_key", "")),
                    task.get("job_cluster_key"),
                )
                found.setdefault(key, place)
    return tuple(found[key] for key in sorted(found))


def _games(task: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield key and name of each game of a task; None where it tells the key alone."""
    games = parse_task_games(str(task.get("task_key", "")), task)
    yield from ((names_of(name).key, name) for name in games.names)
    yield from ((key, None) for key in games.keys)
