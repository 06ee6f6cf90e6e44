"""What is too long for a task's parameters: nothing of it is lost, and what fits stays as it was."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import PlanRefused
from demux.core.names import MAX_NAME_BYTES, invalid_reason, names_of
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from install_workflow.databricks.diff.deployed_games import running
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.databricks.jobs.job import DeployedJob
from install_workflow.databricks.jobs.oversized_settings import (
    MAX_BYTES,
    ROOM_FOR_GAMES,
    STAYING,
    in_groups,
    is_our_settings,
    settings_paths,
    size_of,
    too_long,
)
from install_workflow.databricks.jobs.task_arguments import TaskArguments, arguments
from install_workflow.planning.plan import Task
from tests.fakes.workspace.jobs.cluster_rules import Compute
from tests.fakes.workspace.jobs.job_rules import problems

DEPLOYMENT = {
    "root": "/Volumes/main/demux/data",
    "databricks.name": "prod",
    "maintain.every": "never",
    "databricks.cluster.node_type": "i3.xlarge",
    "databricks.wheel_path": "/Volumes/main/ops/wheels",
    "databricks.auto_apply": "true",
}
MANY = tuple(f"game_{number:04}" for number in range(1500))
WHEEL = "/Volumes/main/ops/wheels/prod/protobuf_demux-0.1.0-py3-none-any.whl"
# hundreds are drawn: nearly all of them must be names that games can have, or Hypothesis gives up
LETTERS = st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp"))
names = st.text(LETTERS, min_size=1, max_size=MAX_NAME_BYTES // 4).filter(
    lambda name: invalid_reason(name, MAX_NAME_BYTES) is None
)


def settings(**changes: object) -> Settings:
    """Settings of a deployment; dots of a key as `__`."""
    return load(None, {}, {**DEPLOYMENT, **{key.replace("__", "."): value for key, value in changes.items()}})


def read(task_arguments: TaskArguments, options: tuple[str, ...], folder: Path) -> Settings:
    """The settings that a command line with these options reads; the files are in the folder."""
    pairs = list(zip(options[::2], options[1::2], strict=True))
    paths = [path for option, path in pairs if option == "--settings"]
    for file in task_arguments.files:
        (folder / Path(file.path).name).write_bytes(file.content)
    given = dict(value.split("=", 1) for option, value in pairs if option == "--set")
    return load(folder / Path(paths[0]).name if paths else None, {}, given)


def tasks_of(*games: str, cluster: str = "cluster_001") -> list[Task]:
    return [Task(game, names_of(game).task_key, cluster) for game in games]


def refused(job: dict[str, Any]) -> list[str]:
    """What a workspace finds wrong with the parameters."""
    return [problem for problem in problems(job, frozenset(), Compute()) if "parameters" in problem]


def test_a_long_list_goes_into_a_file_named_by_its_content(tmp_path: Path) -> None:
    written = settings(games__allow=MANY)
    task_arguments = arguments(written)
    (file,) = task_arguments.files
    assert task_arguments.apply[:2] == ("--settings", file.path)
    assert file.path.startswith("/Volumes/main/ops/wheels/prod/settings.")
    assert is_our_settings(file.path)
    assert size_of(task_arguments.apply) < 2000
    assert read(task_arguments, task_arguments.apply, tmp_path) == written


def test_only_the_longest_settings_go_into_it() -> None:
    task_arguments = arguments(settings(games__allow=MANY, grants__games={"game_0001": ["team"]}))
    assert task_arguments.files[0].content.startswith(b'games: {"allow": ["game_0000", "game_0001", ')
    assert task_arguments.files[0].content.count(b"\n") == 1
    assert "root=/Volumes/main/demux/data" in task_arguments.apply
    assert "databricks.name=prod" in task_arguments.apply
    assert 'grants.games={"game_0001": ["team"]}' in task_arguments.apply


def test_names_in_any_script_are_written_as_they_are(tmp_path: Path) -> None:
    games = tuple(f"{number:04}{'将棋' * 10}é${{x}}" for number in range(400))
    written = settings(games__allow=games)
    (file,) = (task_arguments := arguments(written)).files
    assert "0000将棋将棋".encode() in file.content
    assert "${" not in file.content.decode()
    assert len(file.content) < 400 * 100
    assert read(task_arguments, task_arguments.apply, tmp_path) == written


def test_what_a_bundles_targets_replace_stays_in_the_parameters() -> None:
    root = f"s3://lake/{'x' * 5000}"
    task_arguments = arguments(
        settings(root=root, tables__catalog="main", kafka__topics=[f"topic_{n}" for n in range(330)])
    )
    assert {f"root={root}", "databricks.name=prod", "tables.catalog=main"} < set(task_arguments.apply)
    assert [file.content.partition(b":")[0] for file in task_arguments.files] == [b"kafka"]


def test_a_root_that_is_too_long_is_refused_before_any_call() -> None:
    with pytest.raises(PlanRefused, match=r"parameters of the task bronze would have .* takes 10,000") as no:
        make_jobs([], settings(root=f"/Volumes/main/demux/{'x' * 10_000}"), WHEEL)
    assert "Shorten root" in no.value.remedy


def test_the_same_settings_make_the_same_file_and_others_another() -> None:
    first, again = (arguments(settings(games__allow=MANY)).files for _ in range(2))
    assert first == again
    assert arguments(settings(games__allow=(*MANY, "one_more"))).files[0].path != first[0].path


def test_what_fits_needs_no_file() -> None:
    assert arguments(settings(games__allow=MANY[:100])).files == ()


def test_without_the_task_that_reads_it_there_is_no_file() -> None:
    assert arguments(settings(games__allow=MANY, databricks__auto_apply="false")).files == ()


def test_a_stage_has_a_file_of_what_it_reads(tmp_path: Path) -> None:
    registries = {"eu": {"games": list(MANY), "url": "https://eu"}}
    written = settings(registries=registries, games__allow=MANY)
    task_arguments = arguments(written)
    assert (
        len({options[1] for options in (task_arguments.deserialize, task_arguments.apply)})
        == len(task_arguments.files)
        == 2
    )
    assert read(task_arguments, task_arguments.deserialize, tmp_path).registries == written.registries
    assert task_arguments.ingest == ("--set", "root=/Volumes/main/demux/data")


@pytest.mark.thorough
@given(st.lists(names, min_size=1, max_size=20), st.dictionaries(names, names, max_size=5))
def test_any_names_come_back_from_the_file(games: list[str], pinned: dict[str, str]) -> None:
    # few are drawn and many written: a draw has a limit
    many = [f"{games[number % len(games)]}{'x' * 30}"[:40] + f"{number:03}" for number in range(300)]
    written = settings(
        games__allow=[name for name in many if invalid_reason(name, MAX_NAME_BYTES) is None],
        games__pinned=dict.fromkeys(pinned, "big"),
    )
    task_arguments = arguments(written)
    (file,) = task_arguments.files
    assert "{{" not in (text := file.content.decode())
    assert "${" not in text
    with TemporaryDirectory() as folder:
        assert read(task_arguments, task_arguments.apply, Path(folder)).games == written.games


def test_more_than_a_settings_file_may_have_is_refused_before_any_call() -> None:
    games = tuple(f"game_{number:05}{'x' * 60}" for number in range(5000))
    with pytest.raises(PlanRefused, match="bytes of settings; a settings file has 262,144 at most") as no:
        arguments(settings(games__allow=games))
    assert "games.allow" in no.value.remedy
    assert "pattern" not in no.value.remedy


def test_a_path_that_is_too_long_is_refused_before_any_call() -> None:
    with pytest.raises(PlanRefused, match=r"parameters of the task apply_discovered would have .* takes 10,000") as no:
        make_jobs([], settings(), "/Workspace/" + "x" * 10_000)
    assert "--wheel" in no.value.remedy


@given(st.lists(names, max_size=400))
def test_groups_have_every_name_in_order_and_each_fits(games: list[str]) -> None:
    groups = in_groups(games)
    assert [game for group in groups for game in group] == games
    assert all(size_of(group) <= ROOM_FOR_GAMES + 2 for group in groups)
    assert all(groups) or groups == [()]


@given(
    # those that stay do so however little room there is
    st.dictionaries(st.text(max_size=5).filter(lambda key: key not in STAYING), st.text(max_size=40), max_size=10),
    st.integers(0, 400),
)
def test_what_stays_fits_and_is_the_shorter(texts: dict[str, str], room: int) -> None:
    moved = too_long(texts, room)
    sizes = {key: size_of(("--set", f"{key}={text}")) for key, text in texts.items()}
    stays = [size for key, size in sizes.items() if key not in moved]
    assert sum(stays) <= room
    assert max(stays, default=0) <= min((sizes[key] for key in moved), default=10**9)


def test_the_games_of_a_cluster_have_more_tasks_where_one_is_too_short() -> None:
    games = [f"{number:03}{'X' * 77}" for number in range(140)]
    (job,) = make_jobs(
        tasks_of(*games), settings(databricks__granularity="cluster", run__streams_per_cluster=140), WHEEL
    )
    keys = [task["task_key"] for task in job.settings["tasks"]]
    assert keys[1:4] == ["deserialize_cluster_001", "deserialize_cluster_001_PART2", "deserialize_cluster_001_PART3"]
    assert refused(dict(job.settings)) == []
    found = running([DeployedJob(1, job.part, job.settings)], ())
    assert (found.games, set(found.clusters.values())) == (frozenset(games), {"cluster_001"})


def test_a_job_of_such_tasks_keeps_its_limit() -> None:
    games = [f"{number:03}{'X' * 77}" for number in range(140)]
    tasks = [
        task for n in range(1, 4) for task in tasks_of(*(f"{n}{game[1:]}" for game in games), cluster=f"cluster_00{n}")
    ]
    chosen = settings(databricks__granularity="cluster", run__streams_per_cluster=140, databricks__tasks_per_job=8)
    jobs = make_jobs(tasks, chosen, WHEEL)
    assert all(len(job.settings["tasks"]) <= 8 for job in jobs)
    assert len(jobs) > 1


def test_every_task_of_a_large_deployment_is_taken() -> None:
    chosen = settings(
        games__allow=MANY,
        games__pinned=dict.fromkeys(MANY[:100], "big"),
        run__streams_per_cluster=100,
        databricks__granularity="cluster",
        registries={"eu": {"games": list(MANY[:200]), "url": "https://eu"}},
        kafka__topics=MANY,
        source__kind="kafka",
    )
    (job,) = make_jobs(tasks_of(*MANY[:100], cluster="big"), chosen, WHEEL)
    assert refused(dict(job.settings)) == []
    assert all(size_of(task["python_wheel_task"]["parameters"]) <= MAX_BYTES for task in job.settings["tasks"])
    assert settings_paths([job.settings]) == {file.path for file in arguments(chosen).files}
