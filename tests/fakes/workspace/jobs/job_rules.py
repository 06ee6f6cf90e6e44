"""What the server refuses of a job's settings."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from tests.fakes.workspace.http.exchange import Refused
from tests.fakes.workspace.jobs.cluster_rules import Compute

MAX_TASKS, MAX_KEY, MAX_NAME_BYTES, MAX_TAGS = 1000, 100, 4096, 25
MAX_PARAMETER_BYTES = 10_000
_KEY = re.compile(r"[\w-]+", re.ASCII)
# kinds of task that bring no code of ours to a cluster
_WITHOUT_CLUSTER = frozenset({"run_job_task", "condition_task", "for_each_task", "sql_task", "pipeline_task"})
_WHERE = frozenset({"job_cluster_key", "new_cluster", "existing_cluster_id", "environment_key"})
_STARTERS = ("schedule", "continuous", "trigger")


def check(settings: Mapping[str, Any], jobs: Iterable[int], compute: Compute) -> None:
    """Let legal settings pass.

    Args:
        settings: all settings of the job.
        jobs: the ids of the jobs there are.
        compute: what clusters may be made of.

    Raises:
        Refused: 400, with the first thing that is wrong.
    """
    for message in problems(settings, frozenset(jobs), compute):
        raise Refused(400, "INVALID_PARAMETER_VALUE", message)


def problems(settings: Mapping[str, Any], jobs: frozenset[int], compute: Compute) -> Iterator[str]:
    """Everything that is wrong, as sentences."""
    tasks = settings.get("tasks", [])
    clusters = settings.get("job_clusters", [])
    yield from _in_general(settings, len(tasks))
    yield from _keys("task_key", tasks)
    yield from _keys("job_cluster_key", clusters)
    yield from _dependencies(tasks)
    keys = {cluster.get("job_cluster_key") for cluster in clusters}
    for task in tasks:
        yield from _parameters(task)
        yield from _place(task, keys)
        yield from _called(task, jobs)
    for each in [*clusters, *tasks]:
        if "new_cluster" in each:
            yield from compute.problems(each["new_cluster"])


def _in_general(settings: Mapping[str, Any], tasks: int) -> Iterator[str]:
    if tasks > MAX_TASKS:
        yield f"The number of tasks in a job cannot exceed {MAX_TASKS}; there are {tasks}."
    if len(settings.get("name", "").encode()) > MAX_NAME_BYTES:
        yield f"The job's name is longer than {MAX_NAME_BYTES} bytes."
    yield from _tags(settings.get("tags", {}))
    starters = [name for name in _STARTERS if name in settings]
    if len(starters) > 1:
        yield f"Only one of {' and '.join(starters)} may be set."
    cron = settings.get("schedule", {}).get("quartz_cron_expression", "0 0 0 * * ?")
    if len(cron.split()) not in (6, 7):
        yield f"Invalid quartz cron expression: '{cron}'."


def _tags(tags: Mapping[str, str]) -> Iterator[str]:
    if len(tags) > MAX_TAGS:
        yield f"The number of tags cannot exceed {MAX_TAGS}; there are {len(tags)}."
    for key, value in tags.items():
        if not 1 <= len(key) <= 127 or len(value) > 255:
            yield f"The tag '{key}' is too long or empty."
        if not f"{key}{value}".isprintable() or max(f"{key}{value}") > "\xff":
            yield f"The tag '{key}' has a character that is not Latin-1."


def _keys(name: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for key, count in Counter(str(entry.get(name, "")) for entry in entries).items():
        if not _KEY.fullmatch(key):
            yield f"The {name} '{key}' is not legal: only letters, digits, hyphens and underscores are."
        if len(key) > MAX_KEY:
            yield f"The {name} '{key}' is longer than {MAX_KEY} characters."
        if count > 1:
            yield f"Duplicate {name}: '{key}'."


def _dependencies(tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    graph = {task.get("task_key"): [each.get("task_key") for each in task.get("depends_on", [])] for task in tasks}
    for key, needed in graph.items():
        for other in needed:
            if other not in graph:
                yield f"Task '{key}' depends on task '{other}', which is not defined."
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        yield "The tasks' dependencies have a cycle."


def _parameters(task: Mapping[str, Any]) -> Iterator[str]:
    # the words of the API's reference; where it is enforced, and how it is worded there, is not tried
    for kind in ("python_wheel_task", "spark_python_task", "spark_jar_task"):
        parameters = task.get(kind, {}).get("parameters", [])
        size = len(json.dumps({"parameters": parameters}, ensure_ascii=False, separators=(",", ":")).encode())
        if not all(str(each).isascii() for each in parameters):
            yield f"Task '{task.get('task_key')}': {kind}.parameters accept only the ASCII character set."
        if size > MAX_PARAMETER_BYTES:
            yield (
                f"Task '{task.get('task_key')}': The JSON representation of {kind}.parameters cannot exceed "
                f"{MAX_PARAMETER_BYTES:,} bytes; it has {size:,}."
            )


def _place(task: Mapping[str, Any], clusters: set[Any]) -> Iterator[str]:
    """What is wrong with where the task runs."""
    key, named = task.get("task_key"), task.get("job_cluster_key")
    if named is not None and named not in clusters:
        yield f"Task '{key}' refers to the job cluster '{named}', which is not defined."
    given, without = _WHERE & task.keys(), _WITHOUT_CLUSTER & task.keys()
    if len(given) > 1 or (given and without):
        yield f"Task '{key}' cannot have all of: {', '.join(sorted(given | without))}."
    if not given and not without:
        yield f"Task '{key}': One of job_cluster_key, new_cluster, or existing_cluster_id must be specified."


def _called(task: Mapping[str, Any], jobs: frozenset[int]) -> Iterator[str]:
    """What is wrong with the job that the task runs."""
    if "run_job_task" in task and task["run_job_task"].get("job_id") not in jobs:
        yield f"Task '{task.get('task_key')}' runs job {task['run_job_task'].get('job_id')}, which does not exist."
