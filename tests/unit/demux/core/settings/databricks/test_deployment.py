"""The settings of a workspace: what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from demux.core.errors import SettingsInvalid
from demux.core.settings.databricks.access import AccessLevel
from demux.core.settings.databricks.deployment import Granularity
from demux.core.settings.databricks.schedule import ScheduleKind
from demux.core.settings.databricks.values import is_remote
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings

NAMED = {
    "databricks.name": "prod",
    "databricks.cluster.node_type": "i3.xlarge",
    "databricks.wheel_path": "/Volumes/main/ops/wheels",
}


def loaded(**databricks: object) -> Settings:
    """The settings with these keys below `databricks`, dots as `__`, as from the command line."""
    given = {f"databricks.{name.replace('__', '.')}": value for name, value in databricks.items()}
    return load(None, {}, {**NAMED, **given})


def mistakes(**databricks: object) -> list[str]:
    """What is said of them."""
    with pytest.raises(SettingsInvalid) as caught:
        loaded(**databricks)
    # a rule over several fields has no place of its own
    return [
        line.removeprefix("command line: ").removeprefix("settings: ") for line in caught.value.message.splitlines()
    ]


def test_without_a_name_there_is_no_workspace_and_nothing_else_is_needed() -> None:
    assert Settings().databricks.name is None


def test_a_name_needs_a_kind_of_node_and_a_place_for_the_wheel() -> None:
    assert mistakes(cluster__node_type=None, compute="dedicated", wheel_path=None) == [
        "databricks: name needs wheel_path; a job cluster needs cluster.node_type, cluster.instance_pool_id or "
        "cluster.policy_id; for no cluster at all set compute: serverless, and take out cluster"
    ]
    assert loaded(cluster__node_type=None, cluster__policy_id="A1B2").databricks.cluster.policy_id == "A1B2"


@pytest.mark.parametrize("name", ["Prod", "1st", "a" * 41, "a.b", "a b", "${x}", "a/b", "", "x_001", "x_continuous"])
def test_a_name_that_is_no_tag_or_that_a_part_could_have_is_refused(name: str) -> None:
    assert mistakes(name=name)[0].startswith(f"databricks.name: {name!r}: ")


def test_the_runtime_is_the_current_long_term_one_unless_said_otherwise() -> None:
    assert loaded().databricks.cluster.spark_version == "17.3.x-scala2.13"


def test_workers_are_fixed_or_scale_and_never_both() -> None:
    assert mistakes(cluster__min_workers="1") == ["databricks.cluster: min_workers and max_workers belong together"]
    assert mistakes(cluster__min_workers="4", cluster__max_workers="4") == [
        "databricks.cluster: max_workers must be more than min_workers"
    ]
    assert mistakes(cluster__workers="1", cluster__min_workers="1", cluster__max_workers="2") == [
        "databricks.cluster: workers, or min_workers and max_workers, not both"
    ]


def test_a_secret_in_a_spark_property_is_refused_and_not_repeated() -> None:
    (line,) = mistakes(cluster__spark_conf="{fs.account.key: aGVsbG8=}")
    assert line.endswith("fs.account.key must be {{secrets/SCOPE/KEY}}, never the secret itself")
    assert "aGVsbG8" not in line
    conf = {"fs.account.key": "{{secrets/lake/key}}"}
    assert loaded(cluster__spark_conf="{fs.account.key: '{{secrets/lake/key}}'}").databricks.cluster.spark_conf == conf


def test_a_schedule_says_all_that_is_missing_or_too_much_at_once() -> None:
    assert mistakes(schedule__kind="cron", schedule__url="/Volumes/a/b/c", schedule__quiet_s="60") == [
        "databricks.schedule: kind cron needs cron; url is for kind file_arrival, not cron; quiet_s is for kind "
        "file_arrival or table_update, not cron"
    ]
    assert mistakes(schedule__kind="table_update") == ["databricks.schedule: kind table_update needs tables"]
    assert mistakes(schedule__kind="crom") == [
        "databricks.schedule.kind: 'crom' is not allowed; allowed: none, cron, continuous, file_arrival, table_update; "
        "did you mean 'cron'?"
    ]
    assert mistakes(schedule__paused="maybe") == ["databricks.schedule.paused: 'maybe': expected true or false"]


@pytest.mark.parametrize("cron", ["0 5 * * *", "0 0 5 * * *", "0 0 5 ? * ?", "0 0 5 * * ? ; rm", ""])
def test_what_is_no_quartz_expression_is_refused(cron: str) -> None:
    assert mistakes(schedule__kind="cron", schedule__cron=cron)[0].startswith("databricks.schedule.cron: ")


def test_the_folder_of_arriving_files_ends_in_a_slash() -> None:
    schedule = loaded(schedule__kind="file_arrival", schedule__url="s3://bucket/in").databricks.schedule
    assert (schedule.kind, schedule.url) == (ScheduleKind.FILE_ARRIVAL, "s3://bucket/in/")
    assert mistakes(schedule__kind="file_arrival", schedule__url="/tmp/in")[0].startswith("databricks.schedule.url: ")
    assert mistakes(schedule__kind="file_arrival", schedule__url="https://bucket/in") == [
        "databricks.schedule.url: 'https://bucket/in': expected a folder of an external location, such as "
        "s3://bucket/folder/, or /Volumes/…"
    ]
    assert mistakes(schedule__kind="file_arrival", schedule__url="s3://bucket/*/in") == [
        "databricks.schedule.url: 's3://bucket/*/in': must not have wildcards: name the folder above, as all folders "
        "below it are watched too"
    ]


def test_a_time_zone_is_one_that_there_is() -> None:
    given = {"schedule__kind": "cron", "schedule__cron": "0 0 5 * * ?"}
    for name in ("Europe/Berlin", "UTC", "Etc/GMT+2", "GMT+02:00"):
        assert loaded(**given, schedule__timezone=name).databricks.schedule.timezone == name
    assert mistakes(**given, schedule__timezone="Europe/Berln") == [
        "databricks.schedule.timezone: 'Europe/Berln': expected a time zone, such as Europe/Berlin; did you mean "
        "'Europe/Berlin'?"
    ]
    for name in ("Europe", "../etc/passwd", "", "GMT+2 hours"):
        assert mistakes(**given, schedule__timezone=name)[0].startswith("databricks.schedule.timezone: ")


def test_two_things_that_start_a_run_are_one_too_many() -> None:
    cron = {"schedule__kind": "cron", "schedule__cron": "0 0 5 * * ?"}
    assert mistakes(**cron, schedule__url="/Volumes/a/b/c", schedule__tables="a.b.c", schedule__condition="all") == [
        "databricks.schedule: url is for kind file_arrival, not cron; tables is for kind table_update, not cron; "
        "condition is for kind table_update, not cron"
    ]


def test_a_watched_table_has_three_names() -> None:
    assert mistakes(schedule__kind="table_update", schedule__tables="events") == [
        "databricks.schedule.tables.0: 'events': expected catalog.schema.table"
    ]
    assert mistakes(schedule__kind="table_update", schedule__tables="a.b.c, a.b.c") == [
        "databricks.schedule: tables has a.b.c twice"
    ]


def test_three_webhooks_of_a_kind_are_the_most() -> None:
    assert len(loaded(notifications__webhooks_on_failure="a, b, c").databricks.notifications.webhooks_on_failure) == 3
    assert mistakes(notifications__webhooks_on_failure="a, b, c, d") == [
        "databricks.notifications.webhooks_on_failure: a list: expected 3 entries or fewer"
    ]


def test_jobs_run_as_a_user_or_as_a_service_principal() -> None:
    assert mistakes(run_as__user="a@b.c", run_as__service_principal="692bc6d0-ffa3-11ed-be56-0242ac120002") == [
        "databricks.run_as: user or service_principal, not both"
    ]


def test_a_permission_is_one_of_the_workspace() -> None:
    groups = loaded(**{"permissions__groups.data team": "CAN_VIEW"}).databricks.permissions.groups
    assert groups == {"data team": AccessLevel.CAN_VIEW}
    assert mistakes(permissions__groups="{analysts: CAN_VEIW}") == [
        "databricks.permissions.groups.analysts: 'CAN_VEIW' is not allowed; allowed: CAN_MANAGE, CAN_MANAGE_RUN, "
        "CAN_VIEW"
    ]


@pytest.mark.parametrize("tag", ["protobuf_demux", "Protobuf_Demux_part", "Vendor", "clusterName", "aws:x", "a\nb", ""])
def test_a_tag_that_says_whose_a_job_is_or_that_the_platform_sets_is_refused(tag: str) -> None:
    assert mistakes(tags={tag: "x"})[0].startswith("databricks.tags: ")


def test_twenty_two_tags_of_ones_own_are_the_most() -> None:
    tags = {f"tag{number}": "x" for number in range(23)}
    assert mistakes(tags=tags)[0].endswith("expected 22 tags or fewer")


def test_what_tables_hold_is_not_for_the_clusters_settings_to_change() -> None:
    conf = "{spark.sql.session.timeZone: Europe/Berlin, spark.sql.variable.substitute: 'true', spark.a: b}"
    (line,) = mistakes(cluster__spark_conf=conf)
    assert line.endswith(
        "spark.sql.session.timeZone, spark.sql.variable.substitute: what tables hold depends on these, and they are as "
        "demux sets them"
    )


@pytest.mark.parametrize(
    "path", ["wheels", "/Volumes/a/b", "x/Volumes/a/b/c", "/dbfs/x", "/Workspace", "/Workspace/a/../b", "s3://b/c"]
)
def test_a_wheel_belongs_into_a_volume_or_below_the_workspace(path: str) -> None:
    said = "expected a folder such as /Volumes/catalog/schema/volume/wheels or /Workspace/Shared/wheels"
    assert mistakes(wheel_path=path) == [f"databricks.wheel_path: {path!r}: {said}"]


def test_a_job_has_room_for_the_games_of_one_cluster() -> None:
    assert mistakes(tasks_per_job="19") == ["databricks.tasks_per_job must not be less than run.streams_per_cluster"]
    assert loaded(tasks_per_job="19", granularity="cluster").databricks.tasks_per_job == 19
    assert mistakes(tasks_per_job="1001") == ["databricks.tasks_per_job: '1001': expected 1000 or less"]


def test_a_deployment_with_the_fleet_has_a_task_for_each_cluster_and_nothing_else() -> None:
    fleet = {**NAMED, "run.engine": "fleet"}
    assert loaded().granularity is Granularity.GAME
    assert load(None, {}, fleet).granularity is Granularity.CLUSTER
    assert load(None, {}, {**fleet, "databricks.granularity": "cluster"}).granularity is Granularity.CLUSTER
    with pytest.raises(SettingsInvalid) as caught:
        load(None, {}, {**fleet, "databricks.granularity": "game"})
    assert caught.value.message == (
        "settings: run.engine: fleet decodes all games of a cluster in one task, so databricks.granularity: game is "
        "not for it; leave that out, or set run.engine: stream"
    )


def test_a_fleets_cluster_has_room_for_as_many_games_as_the_fleets_own_setting_says() -> None:
    fleet = {**NAMED, "run.engine": "fleet", "run.streams_per_cluster": "1", "databricks.tasks_per_job": "3"}
    pinned = "{chess: big, go: big}"
    chosen = load(None, {}, {**fleet, "games.pinned": pinned})
    assert (chosen.run.per_cluster, chosen.run.per_cluster_key) == (1000, "run.games_per_cluster")
    with pytest.raises(SettingsInvalid, match=r"more games on big than run\.games_per_cluster allows"):
        load(None, {}, {**fleet, "games.pinned": pinned, "run.games_per_cluster": "1"})
    with pytest.raises(SettingsInvalid, match=r"more games on big than run\.streams_per_cluster allows"):
        load(None, {}, {"games.pinned": pinned, "run.streams_per_cluster": "1"})


def test_a_key_that_is_nearly_one_of_a_nested_section_is_found(tmp_path: Path) -> None:
    file = tmp_path / "demux.yml"
    file.write_text("databricks:\n  cluster:\n    nod_type: i3.xlarge\n")
    with pytest.raises(SettingsInvalid) as caught:
        load(file, {}, {})
    expected = "databricks.cluster.nod_type: unknown key; did you mean 'databricks.cluster.node_type'?"
    assert caught.value.message == f"{file}:3: {expected}"


@pytest.mark.parametrize(
    ("place", "remote"),
    [
        ("s3://bucket/demux", True),
        ("abfss://box@account.dfs.core.windows.net/demux", True),
        ("/Volumes/main/demux/data", True),
        ("/Volumes/main/demux", False),
        ("file:///data", False),
        ("s3:///data", False),
        ("/dbfs/data", False),
        ("demux-data", False),
    ],
)
def test_a_cluster_reaches_cloud_storage_and_volumes(place: str, remote: bool) -> None:
    assert is_remote(place) is remote
