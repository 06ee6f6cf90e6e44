"""Which games the deployed jobs run, on which cluster each, and which game should run where. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from demux.core.control.game_load import Load
from demux.core.errors import PlanRefused
from demux.core.names import names_of
from demux.core.schemas.game_discovery import RegisteredGames
from demux.core.settings.settings import Engine, Policy, Settings
from install_workflow.databricks.jobs.cluster import BRONZE
from install_workflow.databricks.jobs.job import DeployedJob
from install_workflow.databricks.jobs.task_games import TaskGames, engine_of, parse_task_games
from install_workflow.planning.plan import Plan, left_out, make_plan
from install_workflow.planning.rebalance import Balance


@dataclass(frozen=True, slots=True)
class Running:
    """The games of the deployed jobs.

    Attributes:
        games: their exact names.
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
        games: those that bronze has.
        loads: what is known of their loads.
        registered: those that the registries have.
        rebalance: whether games may move for the sake of balance.
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
    clusters = _going_on(now, settings)
    # a game that was put elsewhere by hand has no cluster to continue with, but it stays
    elsewhere = now.games - clusters.keys() if settings.games.policy is Policy.AUTO else frozenset()
    games = settings.games.model_copy(update={"allow": (*settings.games.allow, *sorted(elsewhere))})
    seen = known | now.games
    per_cluster = settings.run.per_cluster
    plan = make_plan(seen, clusters, games, per_cluster, discovered.loads, discovered.rebalance, registered)
    return replace(plan, waiting=(*plan.waiting, *left_out(discovered.registered)))


def _going_on(now: Running, settings: Settings) -> Mapping[str, str]:
    """Return the cluster of each game that may stay on it.

    A fleet packs the games of streams again: their tasks change anyway, and it needs fewer clusters.
    """
    if settings.task_engine is Engine.STREAM:
        return now.clusters
    return {game: cluster for game, cluster in now.clusters.items() if game not in now.by_stream}


def running(deployed: Iterable[DeployedJob], known: Iterable[str]) -> Running:
    """Return the games of the jobs; where two have the same game, the job with the lower id counts.

    Args:
        deployed: the jobs with the deployment's tag.
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
            yield _cluster(task), engine_of(key, task), parse_task_games(key, task)


def _cluster(task: Mapping[str, Any]) -> str | None:
    key = task.get("job_cluster_key")
    return None if key in {None, BRONZE} else str(key)
