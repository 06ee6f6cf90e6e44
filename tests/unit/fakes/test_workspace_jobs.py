"""The jobs of the fake workspace, asked for by the real client."""

from __future__ import annotations

from typing import Any

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import BadRequest, InvalidParameterValue, NotFound, PermissionDenied
from databricks.sdk.service.jobs import JobSettings, Task

from tests.fakes.workspace.fake import FakeWorkspace
from tests.unit.fakes.settings_of_jobs import CLUSTER, job, task, typed


def create(client: WorkspaceClient, settings: dict[str, Any]) -> int:
    """The id of a new job with these settings, as they are."""
    answer = client.api_client.do("POST", "/api/2.2/jobs/create", body=settings)
    assert isinstance(answer, dict)
    return int(answer["job_id"])


def got(client: WorkspaceClient, job_id: int, **query: Any) -> dict[str, Any]:
    """What `jobs/get` answers, one page of it."""
    answer = client.api_client.do("GET", "/api/2.2/jobs/get", query={"job_id": job_id, **query})
    assert isinstance(answer, dict)
    return answer


def refusal(client: WorkspaceClient, settings: dict[str, Any]) -> str:
    """Why a job with these settings cannot be made."""
    with pytest.raises(BadRequest) as raised:
        create(client, settings)
    assert raised.value.error_code == "INVALID_PARAMETER_VALUE"
    assert list(client.jobs.list()) == []
    return str(raised.value)


class TestCreating:
    def test_a_job_is_given_back_with_what_the_server_fills_in(self, client: WorkspaceClient) -> None:
        job_id = create(client, job(task("game", depends_on=[{"task_key": "bronze"}]), task("bronze")))
        answer = got(client, job_id)
        assert answer.pop("created_time") > 1_600_000_000_000
        assert answer == {
            "job_id": job_id,
            "creator_user_name": "ann@example.org",
            "run_as_user_name": "ann@example.org",
            "settings": {
                "name": "demux",
                "email_notifications": {},
                "webhook_notifications": {},
                "timeout_seconds": 0,
                "max_concurrent_runs": 1,
                "format": "MULTI_TASK",
                "job_clusters": [
                    {
                        "job_cluster_key": "a",
                        "new_cluster": {
                            **CLUSTER,
                            "driver_node_type_id": "m5d.large",
                            "aws_attributes": {"availability": "SPOT_WITH_FALLBACK", "zone_id": "us-east-1c"},
                            "data_security_mode": "SINGLE_USER",
                            "enable_elastic_disk": False,
                        },
                    }
                ],
                "tasks": [
                    {
                        **task("game", depends_on=[{"task_key": "bronze"}]),
                        "run_if": "ALL_SUCCESS",
                        "timeout_seconds": 0,
                        "email_notifications": {},
                        "webhook_notifications": {},
                    },
                    {
                        **task("bronze"),
                        "run_if": "ALL_SUCCESS",
                        "timeout_seconds": 0,
                        "email_notifications": {},
                        "webhook_notifications": {},
                    },
                ],
            },
        }

    def test_what_was_said_stays_as_it_was_said(self, client: WorkspaceClient) -> None:
        said = {"timeout_seconds": 60, "max_concurrent_runs": 3, "tags": {"a": "b"}}
        cluster = {**CLUSTER, "data_security_mode": "USER_ISOLATION", "aws_attributes": {"zone_id": "auto"}}
        clusters = [{"job_cluster_key": "a", "new_cluster": cluster}]
        settings = got(client, create(client, job(task("t", run_if="ALL_DONE"), job_clusters=clusters, **said)))[
            "settings"
        ]
        assert {name: settings[name] for name in said} == said
        assert settings["tasks"][0]["run_if"] == "ALL_DONE"
        kept = settings["job_clusters"][0]["new_cluster"]
        assert kept["data_security_mode"] == "USER_ISOLATION"
        assert kept["aws_attributes"] == {"availability": "SPOT_WITH_FALLBACK", "zone_id": "auto"}

    def test_dependencies_come_back_sorted_and_tasks_do_not(self, client: WorkspaceClient) -> None:
        needs = [{"task_key": "c"}, {"task_key": "b"}]
        tasks = client.jobs.get(create(client, job(task("z", depends_on=needs), task("c"), task("b")))).settings
        assert tasks is not None
        assert [each.task_key for each in tasks.tasks or []] == ["z", "c", "b"]
        assert [each.task_key for each in (tasks.tasks or [])[0].depends_on or []] == ["b", "c"]

    def test_a_schedule_runs_unless_it_is_said_to_pause(self, client: WorkspaceClient) -> None:
        cron = {"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "UTC"}
        assert got(client, create(client, job(schedule=cron)))["settings"]["schedule"]["pause_status"] == "UNPAUSED"
        paused = {**cron, "pause_status": "PAUSED"}
        assert got(client, create(client, job(schedule=paused)))["settings"]["schedule"] == paused

    def test_what_the_server_takes_and_forgets_does_not_come_back(self, client: WorkspaceClient) -> None:
        trigger = {"table_update": {"table_names": ["a.b.c"], "condition": "ANY_UPDATED"}}
        clusters = [{"job_cluster_key": "a", "new_cluster": {**CLUSTER, "apply_policy_default_values": True}}]
        settings = got(client, create(client, job(trigger=trigger, job_clusters=clusters)))["settings"]
        assert settings["trigger"] == {"pause_status": "UNPAUSED", "table_update": {"table_names": ["a.b.c"]}}
        assert "apply_policy_default_values" not in settings["job_clusters"][0]["new_cluster"]

    def test_two_jobs_may_have_one_name(self, client: WorkspaceClient, workspace: FakeWorkspace) -> None:
        first, second = create(client, job()), create(client, job())
        assert first < second
        assert [each.job_id for each in workspace.jobs.named("demux")] == [first, second]


class TestRules:
    def test_there_are_at_most_a_thousand_tasks(self, client: WorkspaceClient) -> None:
        tasks = [task(f"t{number}") for number in range(1001)]
        assert refusal(client, job(*tasks)) == "The number of tasks in a job cannot exceed 1000; there are 1001."
        assert create(client, job(*tasks[:1000])) == 1001

    @pytest.mark.parametrize(
        ("tasks", "why"),
        [
            ([task("a"), task("a")], "Duplicate task_key: 'a'."),
            (
                [task("a", python_wheel_task={"package_name": "p", "entry_point": "e", "parameters": ["x" * 9982]})],
                "Task 'a': The JSON representation of python_wheel_task.parameters cannot exceed 10,000 bytes; it has "
                "10,001.",
            ),
            ([task("a" * 101)], f"The task_key '{'a' * 101}' is longer than 100 characters."),
            (
                [task("a b")],
                "The task_key 'a b' is not legal: only letters, digits, hyphens and underscores are.",
            ),
            ([task("ä")], "The task_key 'ä' is not legal: only letters, digits, hyphens and underscores are."),
            ([task("")], "The task_key '' is not legal: only letters, digits, hyphens and underscores are."),
            (
                [task("a", depends_on=[{"task_key": "b"}])],
                "Task 'a' depends on task 'b', which is not defined.",
            ),
            ([task("a", depends_on=[{"task_key": "a"}])], "The tasks' dependencies have a cycle."),
            (
                [task("a", job_cluster_key="b")],
                "Task 'a' refers to the job cluster 'b', which is not defined.",
            ),
            (
                [{"task_key": "a", "python_wheel_task": {}}],
                "An environment is required for serverless task a. Please define one using `environments` and "
                "`environment_key`.",
            ),
            (
                [{"task_key": "a", "notebook_task": {}}],
                "Task 'a': One of job_cluster_key, new_cluster, or existing_cluster_id must be specified.",
            ),
            (
                [{"task_key": "a", "environment_key": "x", "python_wheel_task": {}}],
                "Task 'a' refers to the environment 'x', which is not defined.",
            ),
            (
                [task("a", run_job_task={"job_id": 7})],
                "Task 'a' cannot have all of: job_cluster_key, run_job_task.",
            ),
            ([{"task_key": "a", "run_job_task": {"job_id": 7}}], "Task 'a' runs job 7, which does not exist."),
            (
                [{"task_key": "a", "run_job_task": {"job_id": "${part:001}"}}],
                "Task 'a' runs job ${part:001}, which does not exist.",
            ),
        ],
    )
    def test_tasks_that_cannot_be_are_refused(
        self, client: WorkspaceClient, tasks: list[dict[str, Any]], why: str
    ) -> None:
        assert refusal(client, job(*tasks)) == why

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"num_workers": None}, "Cluster validation error: Missing required field: settings.cluster_spec."),
            ({"num_workers": 0}, "NumWorkers could be 0 only for SingleNode clusters."),
            ({"spark_version": None}, "Cluster validation error: Missing required field: settings.cluster_spec."),
            ({"node_type_id": "m5d.huge"}, "Node type m5d.huge is not supported. Supported node types: m5d.large"),
            ({"spark_version": "1.0"}, "Invalid spark version 1.0."),
        ],
    )
    def test_clusters_that_cannot_be_are_refused(
        self, workspace: FakeWorkspace, client: WorkspaceClient, change: dict[str, Any], why: str
    ) -> None:
        workspace.jobs.compute.node_types = frozenset({"m5d.large"})
        workspace.jobs.compute.spark_versions = frozenset({"15.4.x-scala2.12"})
        cluster = {name: value for name, value in {**CLUSTER, **change}.items() if value is not None}
        settings = job(job_clusters=[{"job_cluster_key": "a", "new_cluster": cluster}])
        assert refusal(client, settings).startswith(why)

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ({"name": "n" * 4097}, "The job's name is longer than 4096 bytes."),
            (
                {"tags": {f"t{number}": "" for number in range(26)}},
                "The number of tags cannot exceed 25; there are 26.",
            ),
            ({"tags": {"t": "v" * 256}}, "The tag 't' is too long or empty."),
            ({"tags": {"t": "日"}}, "The tag 't' has a character that is not Latin-1."),
            (
                {"schedule": {"quartz_cron_expression": "0 0 * * * ?"}, "continuous": {}},
                "Only one of schedule and continuous may be set.",
            ),
            ({"schedule": {"quartz_cron_expression": "* * *"}}, "Invalid quartz cron expression: '* * *'."),
        ],
    )
    def test_other_settings_that_cannot_be_are_refused(
        self, client: WorkspaceClient, more: dict[str, Any], why: str
    ) -> None:
        assert refusal(client, job(**more)) == why

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"instance_pool_id": "p"}, "The field 'node_type_id' cannot be supplied when an instance pool ID is"),
            ({"driver_instance_pool_id": "p"}, "The field 'driver_instance_pool_id' cannot be supplied without"),
            (
                {"aws_attributes": {"zone_id": "a"}, "gcp_attributes": {"zone_id": "b"}},
                "Only one of aws_attributes, gcp",
            ),
            ({"data_security_mode": "USER_ISOLATION", "single_user_name": "a"}, "single_user_name can only be set for"),
            (
                {"cluster_log_conf": {"s3": {"destination": "s3://b/l"}}},
                "Either region or endpoint must be set for an S3",
            ),
            (
                {"init_scripts": [{"s3": {"destination": "s3://b/a.sh"}}]},
                "Either region or endpoint must be set for an S3",
            ),
            (
                {"spark_version": "15.4.x-photon-scala2.12", "runtime_engine": "PHOTON"},
                "runtime_engine cannot be set for a spark_version that contains -photon-",
            ),
        ],
    )
    def test_machines_that_cannot_be_are_refused(
        self, client: WorkspaceClient, change: dict[str, Any], why: str
    ) -> None:
        settings = job(job_clusters=[{"job_cluster_key": "a", "new_cluster": {**CLUSTER, **change}}])
        assert refusal(client, settings).startswith(why)

    @pytest.mark.parametrize(
        ("of_task", "spec", "why"),
        [
            (
                {"libraries": [{"whl": "/a.whl"}]},
                {"environment_version": "4"},
                "Libraries field is not supported for serverless task, please specify libraries in environment.",
            ),
            ({}, {}, "Environment 'e': environment_version is required."),
            ({}, {"client": "1", "environment_version": "4"}, "Only one of client and environment_version can be"),
        ],
    )
    def test_environments_that_cannot_be_are_refused(
        self, client: WorkspaceClient, of_task: dict[str, Any], spec: dict[str, Any], why: str
    ) -> None:
        serverless = {"task_key": "a", "environment_key": "e", "python_wheel_task": {}, **of_task}
        settings = {"name": "demux", "tasks": [serverless], "environments": [{"environment_key": "e", "spec": spec}]}
        assert refusal(client, settings).startswith(why)

    @pytest.mark.parametrize(
        ("more", "why"),
        [
            (
                {"health": {"rules": [{"metric": "ROWS", "op": "GREATER_THAN", "value": 1}]}},
                "Invalid health rule for the",
            ),
            (
                {"email_notifications": {"on_duration_warning_threshold_exceeded": ["a@b.org"]}},
                "on_duration_warning_threshold_exceeded requires a health rule for RUN_DURATION_SECONDS.",
            ),
        ],
    )
    def test_limits_that_cannot_be_are_refused(self, client: WorkspaceClient, more: dict[str, Any], why: str) -> None:
        assert refusal(client, job(**more)).startswith(why)

    def test_a_refused_change_leaves_the_job_as_it_is(self, client: WorkspaceClient) -> None:
        job_id = create(client, job())
        before = got(client, job_id)
        with pytest.raises(InvalidParameterValue, match="Duplicate task_key: 'a'"):
            client.jobs.reset(job_id, typed(job(task("a"), task("a"))))
        assert got(client, job_id) == before

    def test_a_body_of_another_shape_is_refused(self, client: WorkspaceClient) -> None:
        with pytest.raises(BadRequest) as raised:
            create(client, {"name": "demux", "tasks": [5]})
        assert raised.value.error_code == "MALFORMED_REQUEST"


class TestUsers:
    def test_who_may_not_create_jobs_is_told_so(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        workspace.users.creators = frozenset({"bob@example.org"})
        with pytest.raises(PermissionDenied, match="is not authorized to create jobs"):
            client.jobs.create(name="demux")
        assert workspace.jobs.held == {}

    def test_a_job_runs_as_whom_it_says_if_that_is_allowed(
        self, workspace: FakeWorkspace, client: WorkspaceClient
    ) -> None:
        workspace.users.run_as = frozenset({"robot"})
        allowed = create(client, job(run_as={"service_principal_name": "robot"}))
        assert client.jobs.get(allowed).run_as_user_name == "robot"
        with pytest.raises(PermissionDenied, match="does not have permission to set run_as"):
            create(client, job(run_as={"user_name": "bob@example.org"}))
        assert list(workspace.jobs.held) == [allowed]

    def test_nobody_runs_as_somebody_unknown(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        workspace.users.known = frozenset({"robot"})
        with pytest.raises(NotFound, match="Principal robby does not exist"):
            create(client, job(run_as={"service_principal_name": "robby"}))


class TestPages:
    def test_a_large_job_comes_in_pages_of_a_hundred_tasks(self, client: WorkspaceClient) -> None:
        keys = [f"t{number:03}" for number in range(250)]
        parameters = [{"name": "p", "default": "1"}]
        job_id = create(client, job(*(task(key) for key in keys), parameters=parameters))
        pages = [got(client, job_id)]
        while "next_page_token" in pages[-1]:
            pages.append(got(client, job_id, page_token=pages[-1]["next_page_token"]))
        assert [len(page["settings"]["tasks"]) for page in pages] == [100, 100, 50]
        assert [page.get("has_more") for page in pages] == [True, True, None]
        assert [page["settings"].get("parameters") for page in pages] == [parameters, None, None]
        assert ["job_clusters" in page["settings"] for page in pages] == [True, False, False]
        assert [page["settings"]["name"] for page in pages] == ["demux"] * 3
        settings = client.jobs.get(job_id).settings
        assert settings is not None
        assert [each.task_key for each in settings.tasks or []] == keys
        assert len(settings.job_clusters or []) == 1

    def test_every_long_list_of_a_job_has_pages(self, client: WorkspaceClient) -> None:
        clusters = [{"job_cluster_key": key, "new_cluster": CLUSTER} for key in ["a", *map(str, range(120))]]
        job_id = create(client, job(job_clusters=clusters))
        second = got(client, job_id, page_token=got(client, job_id)["next_page_token"])
        assert len(second["settings"]["job_clusters"]) == 21
        assert "tasks" not in second["settings"]
        settings = client.jobs.get(job_id).settings
        assert settings is not None
        assert [each.job_cluster_key for each in settings.job_clusters or []][-1] == "119"

    def test_the_list_of_jobs_has_pages_and_the_newest_first(
        self, workspace: FakeWorkspace, client: WorkspaceClient
    ) -> None:
        made = [create(client, job()) for _ in range(45)]
        assert [each.job_id for each in client.jobs.list()] == made[::-1]
        assert workspace.counted()["GET /api/2.2/jobs/list"] == 3
        assert [each.job_id for each in client.jobs.list(limit=100)] == made[::-1]
        assert workspace.counted()["GET /api/2.2/jobs/list"] == 4
        with pytest.raises(InvalidParameterValue, match="limit must be between 1 and 100, not 101"):
            list(client.jobs.list(limit=101))

    def test_the_list_finds_a_name_whole_and_in_any_case(self, client: WorkspaceClient) -> None:
        create(client, job(name="demux_2"))
        found = [create(client, job(name="Demux")), create(client, job(name="demux"))]
        assert [each.job_id for each in client.jobs.list(name="DEMUX")] == found[::-1]

    def test_the_list_has_tasks_only_if_they_are_asked_for(self, client: WorkspaceClient) -> None:
        create(client, job(*(task(f"t{number}") for number in range(101)), tags={"a": "b"}))
        short = client.api_client.do("GET", "/api/2.2/jobs/list")
        assert isinstance(short, dict)
        assert short["jobs"][0]["settings"].keys() & {"tasks", "job_clusters", "tags"} == {"tags"}
        long = client.api_client.do("GET", "/api/2.2/jobs/list", query={"expand_tasks": True})
        assert isinstance(long, dict)
        assert len(long["jobs"][0]["settings"]["tasks"]) == 100
        assert long["jobs"][0]["has_more"] is True
        whole = next(iter(client.jobs.list(expand_tasks=True))).settings
        assert whole is not None
        assert len(whole.tasks or []) == 101

    def test_an_empty_workspace_lists_nothing(self, client: WorkspaceClient) -> None:
        assert list(client.jobs.list()) == []


class TestChanging:
    def test_a_reset_replaces_everything_but_run_as(self, client: WorkspaceClient) -> None:
        job_id = create(client, job(tags={"a": "b"}, run_as={"user_name": "bob@example.org"}))
        before = got(client, job_id)
        client.jobs.reset(job_id, typed(job(task("other"), name="new")))
        after = got(client, job_id)
        assert after["settings"]["name"] == "new"
        assert "tags" not in after["settings"]
        assert [each["task_key"] for each in after["settings"]["tasks"]] == ["other"]
        assert after["settings"]["run_as"] == {"user_name": "bob@example.org"}
        assert {name: after[name] for name in ("job_id", "creator_user_name", "created_time")} == {
            name: before[name] for name in ("job_id", "creator_user_name", "created_time")
        }

    def test_an_update_merges_tasks_and_replaces_the_rest(self, client: WorkspaceClient) -> None:
        job_id = create(client, job(task("a"), task("b"), tags={"x": "1"}, description="d"))
        changed = Task.from_dict(task("b", max_retries=2))
        client.jobs.update(
            job_id,
            new_settings=JobSettings(tasks=[changed], tags={"y": "2"}),
            fields_to_remove=["tasks/a", "description"],
        )
        settings = got(client, job_id)["settings"]
        assert [(each["task_key"], each.get("max_retries")) for each in settings["tasks"]] == [("b", 2)]
        assert settings["tags"] == {"y": "2"}
        assert "description" not in settings
        assert settings["name"] == "demux"

    def test_a_deleted_job_is_gone(self, client: WorkspaceClient) -> None:
        job_id = create(client, job())
        client.jobs.delete(job_id)
        assert list(client.jobs.list()) == []
        with pytest.raises(NotFound, match=f"Job {job_id} does not exist"):
            client.jobs.get(job_id)

    def test_an_unknown_job_is_missing_or_forbidden(self, client: WorkspaceClient) -> None:
        with pytest.raises(NotFound, match="Job 5 does not exist"):
            client.jobs.get(5)
        with pytest.raises(NotFound, match="Job 5 does not exist"):
            client.jobs.delete(5)
        # permission is checked before existence
        with pytest.raises(PermissionDenied, match="does not have Manage permissions on job 5"):
            client.jobs.reset(5, typed(job()))
        with pytest.raises(PermissionDenied, match="does not have Manage permissions on job 5"):
            client.jobs.update(5, new_settings=typed(job()))

    def test_a_job_that_somebody_made_by_hand_says_so(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        made = workspace.jobs.make(job(), "bob@example.org")
        assert client.jobs.get(made.job_id).creator_user_name == "bob@example.org"


class TestRuns:
    def test_a_run_is_over_at_once_and_listed(self, workspace: FakeWorkspace, client: WorkspaceClient) -> None:
        job_id, other = create(client, job(task("a"), task("b"))), create(client, job())
        run = client.jobs.run_now(job_id).result()
        client.jobs.run_now(other)
        assert run.state is not None
        assert run.state.result_state is not None
        assert run.state.result_state.value == "SUCCESS"
        assert [each.task_key for each in run.tasks or []] == ["a", "b"]
        assert [each.run_id for each in client.jobs.list_runs(job_id=job_id)] == [run.run_id]
        assert len(list(client.jobs.list_runs())) == 2

    def test_a_run_of_one_token_starts_once(self, client: WorkspaceClient) -> None:
        job_id = create(client, job())
        ids = {client.jobs.run_now(job_id, idempotency_token="t").run_id for _ in range(2)}
        assert len(ids) == 1
        assert len(list(client.jobs.list_runs(limit=1))) == 1

    def test_what_is_not_there_does_not_run(self, client: WorkspaceClient) -> None:
        with pytest.raises(NotFound, match="Job 5 does not exist"):
            client.jobs.run_now(5)
        with pytest.raises(NotFound, match="Run 6 does not exist"):
            client.jobs.get_run(6)
