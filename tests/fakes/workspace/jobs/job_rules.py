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
_METRICS = frozenset(
    {
        "RUN_DURATION_SECONDS",
        *(f"STREAMING_BACKLOG_{unit}" for unit in ("BYTES", "FILES", "RECORDS", "SECONDS")),
    }
)
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
    environments = settings.get("environments", [])
    yield from _keys("environment_key", environments)
    for task in tasks:
        yield from _parameters(task)
        yield from _place(task, keys, compute)
        yield from _serverless(task, {each.get("environment_key") for each in environments}, compute)
        yield from _called(task, jobs)
    yield from _environments(environments)
    yield from _watched(settings, compute)
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


def _serverless(task: Mapping[str, Any], environments: set[Any], compute: Compute) -> Iterator[str]:
    """What is wrong with a task on serverless compute; how a workspace without it says so is not tried."""
    key, named = task.get("task_key"), task.get("environment_key")
    if named is None:
        return
    if not compute.serverless:
        yield f"Task '{key}': Serverless compute is not enabled for this workspace."
    if named not in environments:
        yield f"Task '{key}' refers to the environment '{named}', which is not defined."
    if "libraries" in task:
        yield "Libraries field is not supported for serverless task, please specify libraries in environment."


def _environments(environments: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in environments:
        spec = each.get("spec", {})
        if "client" in spec and "environment_version" in spec:
            yield "Only one of client and environment_version can be specified."
        if not {"client", "environment_version", "base_environment"} & spec.keys():
            yield f"Environment '{each.get('environment_key')}': environment_version is required."


def _watched(settings: Mapping[str, Any], compute: Compute) -> Iterator[str]:
    """What is wrong with health, notifications and budget policy."""
    rules = settings.get("health", {}).get("rules", [])
    metrics = [rule.get("metric") for rule in rules]
    for metric, count in Counter(metrics).items():
        if count > 1 or metric not in _METRICS:
            yield f"Invalid health rule for the metric '{metric}'."
    for rule in rules:
        if rule.get("op") != "GREATER_THAN" or not isinstance(rule.get("value"), int) or rule["value"] <= 0:
            yield f"Invalid health rule for the metric '{rule.get('metric')}': expected GREATER_THAN a positive number."
    for way in ("email_notifications", "webhook_notifications"):
        asked = settings.get(way, {}).get("on_duration_warning_threshold_exceeded")
        if asked and "RUN_DURATION_SECONDS" not in metrics:
            yield "on_duration_warning_threshold_exceeded requires a health rule for RUN_DURATION_SECONDS."
    policy = settings.get("budget_policy_id")
    if policy is not None and compute.budget_policies is not None and policy not in compute.budget_policies:
        yield f"The budget policy {policy} does not exist or you do not have permission to use it."


def _place(task: Mapping[str, Any], clusters: set[Any], compute: Compute) -> Iterator[str]:
    """What is wrong with where the task runs."""
    key, named = task.get("task_key"), task.get("job_cluster_key")
    if named is not None and named not in clusters:
        yield f"Task '{key}' refers to the job cluster '{named}', which is not defined."
    given, without = _WHERE & task.keys(), _WITHOUT_CLUSTER & task.keys()
    if len(given) > 1 or (given and without):
        yield f"Task '{key}' cannot have all of: {', '.join(sorted(given | without))}."
    if not given and not without and compute.serverless and "python_wheel_task" in task:
        yield (
            f"An environment is required for serverless task {key}. Please define one using `environments` and "
            "`environment_key`."
        )
    elif not given and not without:
        yield f"Task '{key}': One of job_cluster_key, new_cluster, or existing_cluster_id must be specified."


def _called(task: Mapping[str, Any], jobs: frozenset[int]) -> Iterator[str]:
    """What is wrong with the job that the task runs."""
    if "run_job_task" in task and task["run_job_task"].get("job_id") not in jobs:
        yield f"Task '{task.get('task_key')}' runs job {task['run_job_task'].get('job_id')}, which does not exist."
