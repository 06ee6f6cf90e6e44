"""Which games the deployed jobs run, on which cluster each, and which game should run where. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from demux.core.control.deployment_record import GamePlacement, RecordedGame
from demux.core.control.games_and_rounds import Load
from demux.core.errors import PlanRefused
from demux.core.names import names_of
from demux.core.schemas.registry_selection import RegisteredGames
from demux.core.settings.games import Policy
from demux.core.settings.settings import Engine, Settings
from install_workflow.databricks.diff.changes import WorkspacePlan
from install_workflow.databricks.jobs.compute import cluster_of
from install_workflow.databricks.jobs.job import DeployedJob, JobJson
from install_workflow.databricks.jobs.task_arguments import TaskGames, engine_of, parse_task_games
from install_workflow.planning.plan import Plan, left_out, make_plan
from install_workflow.planning.rebalance import Balance


@dataclass(frozen=True, slots=True)
class Running:
    """The games of the deployed jobs.

    Attributes:
        clusters: cluster by game; a game that was put elsewhere by hand has none.
        unnamed: keys of games whose name is nowhere in the jobs, sorted.
        by_stream: those of the games that have a stream each.
    """

    games: frozenset[str]
    clusters: Mapping[str, str]
    unnamed: tuple[str, ...]
    by_stream: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DiscoveredGames:
    """The games that were found; empty where no search was made.

    Attributes:
        recorded: names of games that the deployment had; they only resolve the keys that its tasks have.
    """

    games: frozenset[str] = frozenset()
    loads: Mapping[str, Load] = field(default_factory=dict)
    registered: RegisteredGames = field(default_factory=RegisteredGames)
    rebalance: Balance = Balance.KEEP
    recorded: frozenset[str] = frozenset()


def plan_games(deployed: Iterable[DeployedJob], settings: Settings, discovered: DiscoveredGames) -> Plan:
    """Return which game runs where: those that the jobs have, that were discovered, and that `games.allow` names.

    Raises:
        PlanRefused: a task has the key of a game whose name is unknown; or as `make_plan`.
    """
    known, registered = {*settings.games.allow, *discovered.games}, discovered.registered.games
    now = running(deployed, {*known, *registered, *discovered.recorded})
    if now.unnamed and settings.games.policy is Policy.AUTO:
        raise PlanRefused(
            f"The jobs name some games by their key alone: {', '.join(now.unnamed)}.",
            "Name them in games.allow, or plan with --discovered.",
            keys=now.unnamed,
        )
    clusters = _continuing(now, settings.task_engine)
    # a game that was put elsewhere by hand has no cluster to continue with, but it stays
    elsewhere = now.games - clusters.keys() if settings.games.policy is Policy.AUTO else frozenset()
    games = settings.games.model_copy(update={"allow": (*settings.games.allow, *sorted(elsewhere))})
    seen = known | now.games
    per_cluster = settings.run.per_cluster
    plan = make_plan(seen, clusters, games, per_cluster, discovered.loads, discovered.rebalance, registered)
    return replace(plan, waiting=(*plan.waiting, *left_out(discovered.registered)))


def _continuing(now: Running, engine: Engine) -> Mapping[str, str]:
    """Return the cluster of each game that may stay on it.

    A fleet packs the games of streams again: their tasks change anyway, and it needs fewer clusters.
    """
    if engine is Engine.STREAM:
        return now.clusters
    return {game: cluster for game, cluster in now.clusters.items() if game not in now.by_stream}


def running(deployed: Iterable[DeployedJob], known: Iterable[str]) -> Running:
    """Return the games of the jobs; where two have the same game, the job with the lower id counts.

    Args:
        known: games that are known from elsewhere: a task may have a game's key in place of its name.
    """
    by_key = {names_of(game).key: game for game in known}
    clusters: dict[str, str | None] = {}
    unnamed: set[str] = set()
    by_stream: set[str] = set()
    for cluster, engine, games in _tasks(deployed):
        unnamed.update(key for key in games.keys if key not in by_key)
        for game in (*games.names, *(by_key[key] for key in games.keys if key in by_key)):
            clusters.setdefault(game, cluster)
            if engine == Engine.STREAM.value:
                by_stream.add(game)
    placed = {game: cluster for game, cluster in clusters.items() if cluster is not None}
    return Running(frozenset(clusters), placed, tuple(sorted(unnamed)), frozenset(by_stream))


def _tasks(deployed: Iterable[DeployedJob]) -> Iterator[tuple[str | None, str | None, TaskGames]]:
    """Yield cluster, engine and games of each task; None for a cluster that no game may be on."""
    for job in sorted(deployed, key=lambda job: job.job_id):
        for task in job.settings.get("tasks", []):
            key = str(task.get("task_key", ""))
            yield cluster_of(key, task), engine_of(key, task), parse_task_games(key, task)


Places = tuple[GamePlacement, ...]
# by job id: what the server added to its settings
Filled = Mapping[int, JobJson]


@dataclass(frozen=True, slots=True)
class PlacementOutcome:
    """The content of the record after an apply."""

    places: Places = ()
    filled: Filled = field(default_factory=dict)


def deployed_places(jobs: Iterable[DeployedJob], known: Iterable[str]) -> Places:
    """Return where the deployed jobs have each game, by key; where two have the same game, the lower id counts.

    Args:
        known: names of games: a task may tell a game's key in place of its name.
    """
    return _places(((job.job_id, job.settings) for job in jobs), known)


def planned_places(plan: WorkspacePlan, ids: Mapping[str, int], known: Iterable[str]) -> Places:
    """Return where the jobs have each game once the plan is applied, by key."""
    return _places(((ids[each.part], each.job.settings) for each in plan.changes if each.job is not None), known)


def record_placements(
    places: Places, before: Iterable[RecordedGame], plan_id: str, now: datetime
) -> tuple[RecordedGame, ...]:
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
                    cluster_of(str(task.get("task_key", "")), task),
                )
                found.setdefault(key, place)
    return tuple(found[key] for key in sorted(found))


def _games(task: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield key and name of each game of a task; None where it tells the key alone."""
    games = parse_task_games(str(task.get("task_key", "")), task)
    yield from ((names_of(name).key, name) for name in games.names)
    yield from ((key, None) for key in games.keys)
