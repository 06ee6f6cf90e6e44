"""The tasks of a job as the Jobs API has them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from demux.core.control.deployment_record import record_folder
from demux.core.names import names_of
from demux.core.settings.databricks.deployment import Granularity
from demux.core.settings.settings import Settings
from demux.core.settings.source import SourceKind
from install_workflow.databricks.jobs.compute import BRONZE, place_json
from install_workflow.databricks.jobs.oversized_settings import in_groups, require_legal
from install_workflow.databricks.jobs.task_arguments import TaskArguments, arguments, is_replaced
from install_workflow.planning.plan import Task

PACKAGE = "protobuf_demux"
ENTRY_POINT = "demux"
DISCOVERED = "apply_discovered"
MAINTAIN = "maintain"
# the extra `kafka`, which a wheel of a task cannot name
KAFKA_CLIENT = "confluent-kafka>=2.8"

TaskJson = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaskMaker:
    """Makes tasks that run the wheel with the settings; made by `maker`."""

    settings: Settings
    wheel: str
    arguments: TaskArguments

    def ingest(self) -> TaskJson:
        """Return the task of the bronze stream."""
        databricks = self.settings.databricks
        record = record_folder(databricks.wheel_path or "", databricks.name or "")
        more = (KAFKA_CLIENT,) if self.settings.source.kind is SourceKind.KAFKA else ()
        parameters = ("ingest", "--deployment-record", record, *self.arguments.ingest)
        return self._wheel_task(BRONZE, BRONZE, parameters, (), more)

    def games(self, cluster: str, tasks: Sequence[Task], after: Iterable[str]) -> list[TaskJson]:
        """Return the tasks of the games on a cluster, by game name: one for each, or one for all of them."""
        after = tuple(after)
        match self.settings.granularity:
            case Granularity.GAME:
                return [self._deserialize(task.key, cluster, (_game_option(task.game),), after) for task in tasks]
            case Granularity.CLUSTER:
                return [
                    self._deserialize(key, cluster, games, after)
                    for key, games in cluster_tasks(cluster, [task.game for task in tasks]).items()
                ]

    def discovered(self, after: Iterable[str]) -> TaskJson:
        """Return the task that adds the games that were discovered, whether or not those before it succeeded."""
        parameters = ("apply", "--discovered", "--wheel", self.wheel, *self.arguments.apply)
        return {**self._wheel_task(DISCOVERED, BRONZE, parameters, after), "run_if": "ALL_DONE"}

    def maintain(self) -> TaskJson:
        """Return the task that maintains all tables, on a cluster of its own."""
        return self._wheel_task(MAINTAIN, MAINTAIN, ("maintain", *self.arguments.maintain), ())

    def _deserialize(self, key: str, cluster: str, games: Iterable[str], after: Iterable[str]) -> TaskJson:
        # a game may be in the plan before its first record
        parameters = ("deserialize", *games, "--ignore-unknown", *self.arguments.deserialize)
        return self._wheel_task(key, cluster, parameters, after)

    def _wheel_task(
        self, key: str, cluster: str, parameters: Sequence[str], after: Iterable[str], more: Sequence[str] = ()
    ) -> TaskJson:
        databricks = self.settings.databricks
        require_legal(key, parameters)
        task = {
            "task_key": key,
            **_depends_on(after),
            **place_json(databricks, cluster, self.wheel, more),
            "python_wheel_task": {
                "package_name": PACKAGE,
                "entry_point": ENTRY_POINT,
                "parameters": list(parameters),
            },
        }
        if databricks.retries:
            task |= {
                "max_retries": databricks.retries,
                "min_retry_interval_millis": databricks.retry_interval_s * 1000,
                "retry_on_timeout": False,
            }
        if databricks.task_timeout_s:
            task["timeout_seconds"] = databricks.task_timeout_s
        return task


def maker(settings: Settings, wheel: str) -> TaskMaker:
    """Return the maker of a deployment's tasks.

    Raises:
        SettingsInvalid: as `arguments`.
    """
    return TaskMaker(settings, wheel, arguments(settings))


def cluster_tasks(cluster: str, games: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a cluster's tasks that name its games, by key: one task, if they fit into it."""
    groups = in_groups([_game_option(game) for game in games])
    # the plan's own names of clusters have no capitals
    return {f"deserialize_{cluster}{f'_PART{n}' if n > 1 else ''}": group for n, group in enumerate(groups, 1)}


def run_job(key: str, part: str, after: Iterable[str]) -> TaskJson:
    """Return the task that runs another job of the deployment; the job's id is a reference still."""
    return {"task_key": key, **_depends_on(after), "run_job_task": {"job_id": part_reference(part)}}


def part_reference(part: str) -> str:
    """Return the placeholder of a part's job id until that is known."""
    return f"${{part:{part}}}"


def _depends_on(after: Iterable[str]) -> dict[str, Any]:
    keys = [{"task_key": key} for key in sorted(after)]
    return {"depends_on": keys} if keys else {}


def _game_option(game: str) -> str:
    # names come from outside: one like {{job.id}} would reach the task as something else, one beyond ASCII never
    return f"--game={game}" if game.isascii() and not is_replaced(game) else f"--game-key={names_of(game).key}"
