"""The plan as jobs: within the limits of the platform, and as its API has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from databricks.sdk.service.jobs import JobSettings
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import PlanRefused, SettingsInvalid
from demux.core.names import MAX_NAME_BYTES, invalid_reason, names_of
from demux.core.settings.databricks.access import AccessLevel, PrincipalKind
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from demux.core.streaming.session import _CONF
from demux.core.tables import TABLE_CONF as CONF
from install_workflow.databricks.jobs.build import make_jobs
from install_workflow.databricks.jobs.job import OWNER_TAG, PART_TAG, ROOT_TAG, Job, Permission, root_tag, with_ids
from install_workflow.databricks.jobs.task import KAFKA_CLIENT
from install_workflow.databricks.jobs.task_arguments import arguments
from install_workflow.planning.plan import Task
from install_workflow.planning.rebalance import pack
from tests.conftest import Golden

WHEEL = "/Volumes/main/ops/wheels/protobuf_demux-0.1.0+abc-py3-none-any.whl"
DEPLOYMENT = {
    "root": "s3://lake/demux",
    "databricks.name": "prod",
    "maintain.every": "never",
    "databricks.cluster.node_type": "i3.xlarge",
    "databricks.wheel_path": "/Volumes/main/ops/wheels",
}
SMALL = {
    "source.kind": "kafka",
    "kafka.bootstrap_servers": "broker:9092",
    "kafka.topics": "events",
    "tables.catalog": "main",
    "databricks.schedule.kind": "cron",
    "databricks.schedule.cron": "0 0 5 * * ?",
    "databricks.notifications.emails_on_failure": "ops@example.com",
    "databricks.notifications.webhooks_on_failure": "0481e838-0a59-4eff-9541-a4ca6f149574",
    "databricks.run_as.service_principal": "692bc6d0-ffa3-11ed-be56-0242ac120002",
    "databricks.permissions.groups": "{analysts: CAN_VIEW, ops: CAN_MANAGE_RUN}",
    "databricks.tags": "{team: games}",
    "databricks.job_timeout_s": "7200",
    "databricks.task_timeout_s": "3600",
}
hostile = st.sampled_from(
    ["chess", "Chess", "将棋", "{{job.id}}", "${part:all}", "${var.x}", "--set", "-x", "a=b", "'; drop table", "../.."]
) | st.text(min_size=1, max_size=20)
games = st.sets(hostile.filter(lambda name: invalid_reason(name, MAX_NAME_BYTES) is None), max_size=60)


def settings(**changes: object) -> Settings:
    """Settings of a deployment; dots of a key as `__`."""
    return load(None, {}, {**DEPLOYMENT, **{key.replace("__", "."): value for key, value in changes.items()}})


def tasks_of(names: Iterable[str], per_cluster: int = 20, pinned: dict[str, str] | None = None) -> list[Task]:
    """The tasks of a plan for these games."""
    clusters = {**pack(names, {}, per_cluster), **(pinned or {})}
    return [Task(game, names_of(game).task_key, cluster) for game, cluster in clusters.items()]


def tasks_in(job: Job) -> dict[str, dict[str, Any]]:
    """The tasks of a job by key."""
    tasks: Sequence[dict[str, Any]] = job.settings["tasks"]
    assert len({task["task_key"] for task in tasks}) == len(tasks)
    return {task["task_key"]: task for task in tasks}


def games_in(task: dict[str, Any]) -> list[str]:
    """What names the games that a task decodes."""
    parameters: list[str] = task.get("python_wheel_task", {"parameters": []})["parameters"]
    return [parameter.split("=", 1)[1] for parameter in parameters if parameter.startswith("--game")]


def named(game: str) -> str:
    """What names the game in a parameter."""
    return game if game.isascii() and "{{" not in game and "${" not in game else names_of(game).key


def text_of(jobs: Iterable[Job]) -> str:
    """The jobs as people read them."""
    shown = [
        {
            "part": job.part,
            "permissions": [[p.kind.value, p.principal, p.level.value] for p in job.permissions],
            "settings": job.settings,
        }
        for job in jobs
    ]
    return json.dumps(shown, indent=2, ensure_ascii=False)


def require_taken(jobs: Iterable[Job]) -> None:
    """The Jobs API's own types take the settings as they are, and nothing gets lost."""
    ids: dict[str, int] = {}
    for number, job in enumerate(jobs, 1):
        request = with_ids(job.settings, ids)
        assert JobSettings.from_dict(request).as_dict() == request
        ids[job.part] = number


def test_a_small_deployment_is_one_job(golden: Golden) -> None:
    jobs = make_jobs(tasks_of(["chess", "将棋", "{{job.id}}"]), settings(**SMALL), WHEEL)
    require_taken(jobs)
    golden("databricks/small.json", text_of(jobs))


def test_games_that_one_job_has_no_room_for_have_jobs_that_bronze_runs(golden: Golden) -> None:
    changes = {"databricks__tasks_per_job": "5", "run__streams_per_cluster": "2", "databricks__auto_apply": "true"}
    schedule = {"databricks__schedule__kind": "continuous", "databricks__schedule__paused": "true"}
    tasks = tasks_of([f"game_{number}" for number in range(7)], 2, {"game_6": "heavy"})
    jobs = make_jobs(tasks, settings(**changes, **schedule), WHEEL)
    require_taken(jobs)
    assert [job.part for job in jobs] == ["001", "002", "n001", "bronze", "continuous"]
    golden("databricks/split.json", text_of(jobs))


def test_one_task_a_cluster_runs_all_its_games(golden: Golden) -> None:
    changes = {"databricks__granularity": "cluster", "databricks__cluster__workers": "0", "databricks__retries": "0"}
    jobs = make_jobs(tasks_of(["chess", "go", "ludo"], 2), settings(**changes, databricks__queue="false"), WHEEL)
    require_taken(jobs)
    golden("databricks/by_cluster.json", text_of(jobs))


def test_with_the_fleet_one_task_a_cluster_decodes_all_its_games_together(golden: Golden) -> None:
    changes = {"run__engine": "fleet", "run__sink": "spark", "run__rows_per_game": "50000"}
    jobs = make_jobs(tasks_of(["chess", "go", "ludo", "{{job.id}}"], 2), settings(**changes), WHEEL)
    require_taken(jobs)
    golden("databricks/fleet.json", text_of(jobs))


def test_a_fleets_settings_change_no_task_of_a_stream() -> None:
    tasks = tasks_of(["chess"])
    (usual,), (other,) = (make_jobs(tasks, settings(**changes), WHEEL) for changes in ({}, {"run__rows_per_game": "5"}))
    assert text_of([usual]) == text_of([other])


def test_a_fleets_cluster_has_a_thousand_games_and_their_few_tasks() -> None:
    games = [f"game_{number}" for number in range(1000)]
    (job,) = make_jobs(tasks_of(games, 1000), settings(run__engine="fleet"), WHEEL)
    tasks = tasks_in(job)
    assert [key for key in tasks if key != "bronze"] == [
        "deserialize_cluster_001",
        *(f"deserialize_cluster_001_PART{part}" for part in range(2, 5)),
    ]
    assert sorted(game for task in tasks.values() for game in games_in(task)) == sorted(games)


def test_a_fleets_cluster_has_a_hundred_and_fifty_contexts_as_well() -> None:
    tasks = tasks_of((f"{number:05}{'X' * 75}" for number in range(10_000)), 10_000)
    with pytest.raises(PlanRefused, match=r"cluster_001 would have \d+ tasks; it has room for 150") as refused:
        make_jobs(tasks, settings(run__engine="fleet", run__games_per_cluster="10000"), WHEEL)
    assert refused.value.remedy == "Lower run.games_per_cluster, or pin fewer games to it."


@given(games, st.integers(1, 6), st.integers(0, 12), st.sampled_from(["game", "cluster"]), st.booleans())
def test_every_game_is_in_one_task_of_a_job_within_its_limits(
    names: set[str], per_cluster: int, more: int, granularity: str, auto_apply: bool
) -> None:
    per_job = max(3, per_cluster) + more
    chosen = settings(
        run__streams_per_cluster=per_cluster,
        databricks__tasks_per_job=per_job,
        databricks__granularity=granularity,
        databricks__auto_apply=auto_apply,
    )
    try:
        jobs = make_jobs(tasks_of(names, per_cluster), chosen, WHEEL)
    except PlanRefused as refused:
        # bronze's own job has no room for as many jobs
        if refused.fields["tasks"] in range(per_job + 1):
            raise
        return
    require_taken(jobs)
    assert len({job.settings["name"] for job in jobs}) == len({job.part for job in jobs}) == len(jobs)
    found = [game for job in jobs for task in tasks_in(job).values() for game in games_in(task)]
    assert sorted(found) == sorted(named(game) for game in names)
    parts: list[str] = []
    for job in jobs:
        require_sound(job, per_job, per_cluster, parts)
        parts.append(job.part)


def test_no_parameter_of_a_task_is_beyond_ascii_whatever_the_settings_are() -> None:
    chosen = settings(
        source__path="s3://bucket/данные",
        kafka__topics="события",
        registry__path="s3://bucket/スキーマ",
        games__allow=["将棋"],
        maintain__zorder_of="{将棋: [user_name]}",
        databricks__auto_apply="true",
    )
    jobs = make_jobs(tasks_of(["chess", "将棋", "🎲 dice"]), chosen, WHEEL)
    words = [word for job in jobs for task in job.settings["tasks"] for word in parameters_of(task)]
    assert all(word.isascii() for word in words)
    file, apply_file = arguments(chosen).files[0], arguments(chosen).files[-1]
    assert "данные" in file.content.decode()
    assert {"--settings", file.path, apply_file.path} <= {*words}


@pytest.mark.parametrize(
    ("changes", "wheel", "named"),
    [
        ({"root": "s3://bucket/données"}, WHEEL, "root=s3://bucket/données"),
        ({"databricks__wheel_path": "/Volumes/main/ops/räder"}, WHEEL, "/Volumes/main/ops/räder/deployment.prod"),
        ({"databricks__auto_apply": "true"}, "/Volumes/main/ops/räder/a.whl", "/Volumes/main/ops/räder/a.whl"),
    ],
)
def test_a_path_beyond_ascii_that_a_task_must_be_told_is_refused(
    changes: dict[str, str], wheel: str, named: str
) -> None:
    with pytest.raises(PlanRefused, match="what is not ASCII in its parameters") as refused:
        make_jobs(tasks_of(["chess"]), settings(**changes), wheel)
    assert refused.value.fields["parameters"] == (named,)


def parameters_of(task: dict[str, Any]) -> list[str]:
    found: list[str] = task.get("python_wheel_task", {}).get("parameters", [])
    return found


def test_a_task_ignores_games_that_have_no_rows_yet() -> None:
    for granularity in ("game", "cluster"):
        (job,) = make_jobs(tasks_of(["chess", "将棋"]), settings(databricks__granularity=granularity), WHEEL)
        parameters = [parameters_of(task) for task in job.settings["tasks"]]
        assert [("--ignore-unknown" in words) for words in parameters] == [
            words[0] == "deserialize" for words in parameters
        ]


def require_sound(job: Job, per_job: int, per_cluster: int, parts: list[str]) -> None:
    """The job keeps the limits, its keys are legal, and what it refers to is there: of jobs, those before it."""
    tasks = tasks_in(job)
    assert len(tasks) <= per_job
    clusters = {cluster["job_cluster_key"]: 0 for cluster in job.settings.get("job_clusters", ())}
    for key, task in tasks.items():
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,100}", key)
        assert {each["task_key"] for each in task.get("depends_on", ())} < set(tasks)
        if "run_job_task" in task:
            assert task["run_job_task"]["job_id"] in {f"${{part:{part}}}" for part in parts}
        else:
            clusters[task["job_cluster_key"]] += 1
    assert set(clusters.values()) <= set(range(1, max(per_cluster, 2) + 1))
    assert (job.settings["tags"][OWNER_TAG], job.settings["tags"][PART_TAG]) == ("prod", job.part)
    assert job.settings["max_concurrent_runs"] == 1


@given(games, st.randoms(use_true_random=False))
def test_the_order_of_the_tasks_does_not_matter(names: set[str], random: Any) -> None:
    tasks = tasks_of(names, 5)
    shuffled = random.sample(tasks, len(tasks))
    assert text_of(make_jobs(shuffled, settings(), WHEEL)) == text_of(make_jobs(tasks, settings(), WHEEL))


def test_two_thousand_games_are_four_jobs_and_every_job_is_full_or_the_last() -> None:
    jobs = make_jobs(tasks_of(f"game_{number}" for number in range(2000)), settings(), WHEEL)
    assert [(job.part, len(job.settings["tasks"])) for job in jobs] == [("001", 1000), ("002", 1000), ("bronze", 3)]


def test_a_job_has_a_hundred_clusters_at_most() -> None:
    jobs = make_jobs(tasks_of((f"game_{number}" for number in range(150)), 1), settings(), WHEEL)
    assert [len(job.settings["job_clusters"]) for job in jobs] == [50, 50, 50, 1]


def test_a_cluster_that_goes_moves_no_other_to_another_job() -> None:
    chosen = settings(databricks__tasks_per_job="4", run__streams_per_cluster="2")
    tasks = tasks_of((f"game_{number}" for number in range(12)), 2)
    before = {job.part: job.settings for job in make_jobs(tasks, chosen, WHEEL)}
    fewer = make_jobs([task for task in tasks if task.cluster != "cluster_002"], chosen, WHEEL)
    changed = [job.part for job in fewer if job.settings != before[job.part]]
    assert changed == ["001"]


def test_the_last_task_adds_what_was_discovered_whatever_became_of_the_others() -> None:
    (job,) = make_jobs(tasks_of(["chess", "go"]), settings(databricks__auto_apply="true"), WHEEL)
    task = tasks_in(job)["apply_discovered"]
    assert task["depends_on"] == [
        {"task_key": "bronze"},
        {"task_key": "deserialize_chess"},
        {"task_key": "deserialize_go"},
    ]
    assert task["run_if"] == "ALL_DONE"
    parameters = task["python_wheel_task"]["parameters"]
    assert parameters[:4] == ["apply", "--discovered", "--wheel", WHEEL]
    assert "databricks.name=prod" in parameters


def test_permissions_are_those_of_the_settings_sorted() -> None:
    changes = {"groups": "{b: CAN_VIEW, a: CAN_MANAGE}", "users": "{a@b.c: CAN_MANAGE_RUN}"}
    chosen = settings(**{f"databricks__permissions__{kind}": text for kind, text in changes.items()})
    (job,) = make_jobs([], chosen, WHEEL)
    assert job.permissions == (
        Permission(PrincipalKind.GROUP, "a", AccessLevel.CAN_MANAGE),
        Permission(PrincipalKind.GROUP, "b", AccessLevel.CAN_VIEW),
        Permission(PrincipalKind.USER, "a@b.c", AccessLevel.CAN_MANAGE_RUN),
    )


@pytest.mark.parametrize(
    ("changes", "field", "expected"),
    [
        (
            {"kind": "file_arrival", "url": "s3://bucket/in", "quiet_s": "60"},
            "trigger",
            {
                "file_arrival": {"url": "s3://bucket/in/", "wait_after_last_change_seconds": 60},
                "pause_status": "UNPAUSED",
            },
        ),
        (
            {"kind": "table_update", "tables": "a.b.c", "condition": "all", "paused": "true"},
            "trigger",
            {"table_update": {"table_names": ["a.b.c"], "condition": "ALL_UPDATED"}, "pause_status": "PAUSED"},
        ),
        (
            {"kind": "cron", "cron": "0 0 5 * * ?", "timezone": "Europe/Berlin"},
            "schedule",
            {"quartz_cron_expression": "0 0 5 * * ?", "timezone_id": "Europe/Berlin", "pause_status": "UNPAUSED"},
        ),
    ],
)
def test_a_schedule_is_what_the_api_calls_it(changes: dict[str, str], field: str, expected: dict[str, object]) -> None:
    jobs = make_jobs([], settings(**{f"databricks__schedule__{key}": text for key, text in changes.items()}), WHEEL)
    require_taken(jobs)
    assert jobs[0].settings[field] == expected


def test_a_cluster_may_scale_and_follow_a_policy() -> None:
    cluster = {
        "min_workers": "1",
        "max_workers": "4",
        "policy_id": "A1",
        "node_type": None,
        "spark_conf": "{spark.a: b}",
    }
    changes = {f"databricks__cluster__{key}": value for key, value in cluster.items()}
    (job,) = make_jobs([], settings(**changes), WHEEL)
    require_taken([job])
    (made,) = job.settings["job_clusters"]
    assert made["new_cluster"] == {
        "autoscale": {"min_workers": 1, "max_workers": 4},
        "data_security_mode": "SINGLE_USER",
        "policy_id": "A1",
        "apply_policy_default_values": True,
        "spark_version": "17.3.x-scala2.13",
        "spark_conf": dict(sorted({**CONF, "spark.a": "b"}.items())),
    }


def test_a_clusters_session_decides_as_our_own_does() -> None:
    assert {key: _CONF[key] for key in CONF} == CONF


@pytest.mark.parametrize("cluster", ["bronze", "a b", "", "x" * 89, "クラスタ", "big_PART2"])
def test_a_cluster_that_no_job_can_have_is_refused(cluster: str) -> None:
    with pytest.raises(PlanRefused, match="cannot have a cluster"):
        make_jobs([Task("chess", "deserialize_chess", cluster)], settings(), WHEEL)


def test_a_cluster_has_a_hundred_and_fifty_contexts() -> None:
    tasks = [Task(f"g{n}", f"deserialize_g{n}", "cluster_001") for n in range(151)]
    assert make_jobs(tasks[:150], settings(), WHEEL)[0].part == "all"
    with pytest.raises(PlanRefused, match="151 tasks; it has room for 150"):
        make_jobs(tasks, settings(), WHEEL)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("granularity", "per_job", "remedy"),
    [
        ("game", "3", "Raise databricks.tasks_per_job, or set databricks.granularity to cluster."),
        (
            "cluster",
            "3",
            "Raise databricks.tasks_per_job, or raise run.streams_per_cluster, so that there are fewer clusters.",
        ),
        ("cluster", "1000", "Raise run.streams_per_cluster, so that there are fewer clusters."),
    ],
)
def test_a_bronze_job_without_room_is_refused_with_a_remedy_that_helps(
    granularity: str, per_job: str, remedy: str
) -> None:
    changes = {"databricks__granularity": granularity, "databricks__tasks_per_job": per_job}
    clusters = range(1, 13 if per_job == "3" else 100_001)
    tasks = [Task(f"g{number}", f"deserialize_g{number}", f"cluster_{number:03d}") for number in clusters]
    with pytest.raises(PlanRefused, match=f"and databricks.tasks_per_job is {per_job}") as refused:
        make_jobs(tasks, settings(**changes, run__streams_per_cluster="1"), WHEEL)
    assert refused.value.remedy == remedy


def test_a_job_says_on_which_root_it_works_whatever_slash_is_behind_it() -> None:
    roots = ("s3://b/r", "s3://b/r/", "s3://b/other")
    tags = [make_jobs([], settings(root=root), WHEEL)[0].settings["tags"][ROOT_TAG] for root in roots]
    assert tags[0] == tags[1] == root_tag("s3://b/r") != tags[2]
    assert len(tags[0]) == 12


def test_without_a_name_there_is_no_deployment() -> None:
    with pytest.raises(SettingsInvalid, match=r"databricks\.name is not set"):
        make_jobs([], Settings(root="s3://b/r"), WHEEL)


def test_a_root_on_this_machine_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match="root: 'demux-data'"):
        make_jobs([], settings(root="demux-data"), WHEEL)


def test_maintenance_is_a_job_with_a_cluster_and_a_schedule_of_its_own(golden: Golden) -> None:
    changes = {"maintain__every": "12h", "maintain__bronze_days": "400", "maintain__zorder_of": "{将棋: [user_name]}"}
    usual, made = make_jobs(tasks_of(["chess"]), settings(**SMALL, **changes), WHEEL)
    require_taken([made])
    assert (usual.part, made.part) == ("all", "maintain")
    golden("databricks/maintain.json", text_of([made]))


@pytest.mark.parametrize(
    ("every", "periodic"),
    [
        ("1d", {"interval": 1, "unit": "DAYS"}),
        ("2w", {"interval": 14, "unit": "DAYS"}),
        ("36h", {"interval": 36, "unit": "HOURS"}),
        ("90m", {"interval": 2, "unit": "HOURS"}),
        ("1m", {"interval": 1, "unit": "HOURS"}),
    ],
)
def test_maintenance_comes_as_often_as_the_settings_say_in_whole_hours(every: str, periodic: dict[str, object]) -> None:
    for paused, status in (("false", "UNPAUSED"), ("true", "PAUSED")):
        changes = {"maintain__every": every, "databricks__schedule__paused": paused}
        made = make_jobs([], settings(**changes), WHEEL)[-1]
        require_taken([made])
        assert made.settings["trigger"] == {"periodic": periodic, "pause_status": status}


def test_maintenance_comes_by_default_and_never_only_where_that_is_said() -> None:
    default = {**DEPLOYMENT, "databricks.schedule.kind": "continuous"}
    del default["maintain.every"]
    assert [job.part for job in make_jobs([], load(None, {}, default), WHEEL)] == ["all", "continuous", "maintain"]
    assert [job.part for job in make_jobs([], settings(maintain__every="never"), WHEEL)] == ["all"]


def test_the_task_of_bronze_alone_installs_the_client_of_kafka_as_the_extra_does() -> None:
    (job,) = make_jobs(tasks_of(["chess"]), settings(source__kind="kafka", kafka__topics="events"), WHEEL)
    libraries = {key: task["libraries"] for key, task in tasks_in(job).items()}
    client = {"pypi": {"package": KAFKA_CLIENT}}
    assert libraries == {"bronze": [{"whl": WHEEL}, client], "deserialize_chess": [{"whl": WHEEL}]}
    text = (Path(__file__).parents[5] / "pyproject.toml").read_text(encoding="utf-8")
    # a runtime has cryptography, which comes after it
    assert f'kafka = ["{KAFKA_CLIENT}", "cryptography>=' in text
