"""Settings as arguments, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demux.core.errors import SettingsInvalid
from demux.core.schemas.registry_selection import registry_name_for
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings
from install_workflow.databricks.jobs.task_arguments import arguments

ROOT = "/Volumes/main/demux/data"
DEPLOYED = {
    "root": "s3://lake/demux",
    "source.kind": "kafka",
    "kafka.bootstrap_servers": "broker:9093",
    "kafka.topics": ("a", "b"),
    "kafka.starting_offsets": '{"a": {"0": 23}}',
    "kafka.security_protocol": "SASL_SSL",
    "kafka.sasl_mechanism": "PLAIN",
    "kafka.username": "demux",
    "kafka.password": "secret:databricks/kafka/password",
    "kafka.options": {"fetch.max.bytes": "1000000"},
    "wrapper.schema_id_field": None,
    "framing.payload": "confluent",
    "registry.url": "https://registry",
    "registries": {"eu": {"games": ["eu-*"], "url": "https://eu", "messages": {"s": "a.B"}, "retries": "5"}},
    "games.allow": ("chess", "a, b", "{{job.id}}", "${var.x}", '"\\', "将棋", "\U0001f0cf"),
    "games.limit": 5,
    "run.sink": "spark",
    "spark.conf": {"spark.ui.enabled": "true"},
    "databricks.name": "prod",
    "tables.catalog": "main",
    "tables.quarantine": "bad",
    "databricks.cluster.node_type": "i3.xlarge",
    "databricks.cluster.spark_conf": {"fs.account.key": "{{secrets/lake/key}}"},
    "databricks.schedule.kind": "cron",
    "databricks.schedule.cron": "0 0 5 * * ?",
    "databricks.schedule.paused": True,
    "databricks.permissions.groups": {"data team": "CAN_VIEW"},
    "databricks.wheel_path": "/Workspace/Shared/wheels",
    "databricks.auto_apply": True,
}
usual = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12).filter(str.strip)


def settings(**changes: object) -> Settings:
    """Settings with the root in a volume; dots of a key as `__`."""
    return load(None, {}, {"root": ROOT, **{key.replace("__", "."): value for key, value in changes.items()}})


def deployed() -> Settings:
    """Settings of every kind."""
    given_null = {key: "null" if value is None else value for key, value in DEPLOYED.items()}
    return load(None, {}, given_null)


def keys(options: tuple[str, ...]) -> list[str]:
    """The keys of the settings in the arguments, in order."""
    return [option.split("=", 1)[0] for option in options[1::2]]


def read(options: tuple[str, ...]) -> Settings:
    """The settings that the command line reads."""
    assert set(options[::2]) <= {"--set"}
    return load(None, {}, dict(option.split("=", 1) for option in options[1::2]))


def test_the_defaults_need_no_arguments_but_the_root() -> None:
    task_arguments = arguments(settings())
    assert {task_arguments.ingest, task_arguments.deserialize, task_arguments.apply, task_arguments.maintain} == {
        ("--set", f"root={ROOT}")
    }
    assert task_arguments.files == ()


def test_a_task_reads_the_same_settings_that_were_written() -> None:
    written = deployed()
    assert read(arguments(written).apply) == written.model_copy(update={"spark": Settings().spark})


def test_a_stage_is_told_what_it_reads_and_nothing_of_the_jobs_around_it() -> None:
    task_arguments = arguments(deployed())
    assert keys(task_arguments.ingest) == [
        "framing.payload",
        "kafka.bootstrap_servers",
        "kafka.options",
        "kafka.password",
        "kafka.sasl_mechanism",
        "kafka.security_protocol",
        "kafka.starting_offsets",
        "kafka.topics",
        "kafka.username",
        "root",
        "run.sink",
        "source.kind",
        "tables.catalog",
        "tables.quarantine",
        "wrapper.schema_id_field",
    ]
    assert keys(task_arguments.deserialize) == [
        "registries",
        "registry.url",
        "root",
        "tables.catalog",
        "tables.quarantine",
    ]
    assert keys(task_arguments.maintain) == ["root", "tables.catalog", "tables.quarantine"]


def test_maintenance_is_told_all_of_its_settings_but_when_it_comes() -> None:
    changes = {"every": "12h", "keep": "30d", "bronze_days": 400, "zorder_of": {"将棋": ["user_name"]}}
    written = settings(maintain=changes, run__parallelism=2)
    task_arguments = arguments(written)
    assert read(task_arguments.maintain).maintain == written.maintain.model_copy(update={"every": "1d"})
    assert read(task_arguments.maintain).run.parallelism == 2
    assert task_arguments.ingest == ("--set", f"root={ROOT}")


def test_what_maintenance_is_told_at_length_is_a_file_unless_it_never_comes() -> None:
    columns = {f"game_{number}": ["user_name", "event_time"] for number in range(400)}
    task_arguments = arguments(settings(maintain={"zorder_of": columns}))
    (file,) = task_arguments.files
    assert task_arguments.maintain[:2] == ("--settings", file.path)
    assert arguments(settings(maintain={"zorder_of": columns, "every": "never"})).files == ()


def test_every_setting_reaches_the_stage_that_reads_it() -> None:
    written, task_arguments = deployed(), arguments(deployed())
    ingest, deserialize = read(task_arguments.ingest), read(task_arguments.deserialize)
    for name in ("source", "kafka", "archive", "wrapper", "framing"):
        assert getattr(ingest, name) == getattr(written, name)
    for name in ("registry", "registries", "decoder"):
        assert getattr(deserialize, name) == getattr(written, name)


@given(st.dictionaries(usual, usual, max_size=3), st.lists(usual, max_size=3))
def test_any_text_in_a_list_or_mapping_comes_back(messages: dict[str, str], games: list[str]) -> None:
    written = settings(registries={"a": {"games": games, "messages": messages}})
    options = arguments(written).apply
    assert read(options) == written
    assert not [option for option in options if "{{" in option or "${" in option]


def test_the_first_registry_that_suits_a_game_is_the_first_on_a_cluster_too() -> None:
    written = settings(registries={"special": {"games": ["chess*"]}, "everything": {"games": ["*"]}})
    there = read(arguments(written).deserialize)
    assert list(there.registries) == ["special", "everything"]
    assert registry_name_for("chess", there.registries) == registry_name_for("chess", written.registries) == "special"


def test_what_the_command_line_makes_of_the_root_is_not_repeated() -> None:
    task_arguments = arguments(settings(source__path=f"{ROOT}/source", registry__path=f"{ROOT}/registry"))
    assert task_arguments.apply == ("--set", f"root={ROOT}")


def test_only_references_to_secrets_are_passed_on() -> None:
    assert "kafka.password=secret:databricks/kafka/password" in arguments(deployed()).ingest


@pytest.mark.parametrize("text", ["a{{job.id}}", "${var.x}"])
def test_a_text_that_the_workspace_would_replace_is_refused(text: str) -> None:
    with pytest.raises(SettingsInvalid, match=r"kafka\.topic_pattern") as caught:
        arguments(settings(kafka__topic_pattern=text))
    assert caught.value.fields == {"keys": ("kafka.topic_pattern",)}


def test_every_path_that_no_cluster_reaches_is_named_at_once() -> None:
    wrong = {"root": "data", "archive__path": "/in", "registry__ca_file": "/etc/ca.pem", "wrapper__proto": "w.proto"}
    with pytest.raises(SettingsInvalid) as caught:
        arguments(settings(**wrong, registries={"eu": {"games": ["*"], "path": "eu"}}))
    assert caught.value.fields["places"] == (
        "root: 'data'",
        "archive.path: '/in'",
        "wrapper.proto: 'w.proto'",
        "registries.eu.path: 'eu'",
        "registry.ca_file: '/etc/ca.pem'",
    )


def test_files_may_be_below_the_workspace_and_tables_may_not() -> None:
    assert (
        "registry.path=/Workspace/Shared/protos"
        in arguments(settings(registry__path="/Workspace/Shared/protos")).deserialize
    )
    with pytest.raises(SettingsInvalid, match=r"root: '/Workspace/Shared/data'"):
        arguments(settings(root="/Workspace/Shared/data"))
