"""A round as OpenLineage's run events, over HTTP, as the specification asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import RunEvent
from openlineage.client.serde import Serde

from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings
from demux.pipeline.observers.datasets import DatasetField
from demux.pipeline.observers.lineage import Lineage
from demux.pipeline.task_pool import TaskEnd
from tests.support.http_receiver import receiving
from tests.support.observed import done, failed, observe_round
from tests.support.openlineage_schema import mistakes
from tests.support.spark.tables import bronze_row, write_bronze
from tools.servers.ports import free_ports

ROOT = "s3://lake/demux"


def events_of(*ends: TaskEnd[Any], environ: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The events of a round in which these tasks ended, as they are sent."""
    sent: list[RunEvent] = []
    settings = Settings.model_validate({"root": ROOT, "source": {"kind": "kafka"}})
    lineage = Lineage(
        settings,
        Layout(ROOT),
        environ or {},
        lambda make: sent.append(make()),
        lambda path, _: [DatasetField(path, "long")],
    )
    observe_round([lineage], ends)
    return [Serde.to_dict(event) for event in sent]


def names(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["namespace"], each["name"]) for each in datasets]


def test_a_round_bronze_and_each_game_have_a_run_with_its_datasets() -> None:
    events = events_of(done("chess"), failed("go"), done("ludo", rows=0, bad=0))
    assert [(event["eventType"], event["job"]["name"]) for event in events] == [
        ("START", "demux.round"),
        *(("START", "demux.bronze"), ("COMPLETE", "demux.bronze")),
        *(("START", "demux.silver.chess"), ("COMPLETE", "demux.silver.chess")),
        *(("START", "demux.silver.go"), ("FAIL", "demux.silver.go")),
        ("COMPLETE", "demux.round"),
    ]
    assert {event["job"]["namespace"] for event in events} == {ROOT}
    _, _, bronze, _, chess, _, go, _ = events
    assert names(bronze["inputs"]) == [("kafka://127.0.0.1:9092", "events")]
    assert names(bronze["outputs"]) == [("s3://lake", "demux/bronze"), ("s3://lake", "demux/quarantine")]
    assert names(chess["inputs"]) == [("s3://lake", "demux/bronze")]
    assert names(chess["outputs"]) == [("s3://lake", "demux/silver/chess"), ("s3://lake", "demux/quarantine")]
    rows = [each["outputFacets"]["outputStatistics"]["rowCount"] for each in (*bronze["outputs"], *chess["outputs"])]
    assert rows == [19, 1, 9, 1]
    assert chess["outputs"][0]["facets"]["schema"]["fields"][0]["name"] == f"{ROOT}/silver/chess"
    assert go["run"]["facets"]["errorMessage"]["message"] == "SCHEMA_INVALID Schema 7 is wrong. Correct it."


def test_the_runs_of_bronze_and_games_name_the_round_as_their_parent() -> None:
    first, *others, last = events_of(done("chess"))
    assert last["run"]["runId"] == first["run"]["runId"]
    assert "parent" not in first["run"]["facets"]
    for event in others:
        parent = event["run"]["facets"]["parent"]
        assert (parent["job"]["namespace"], parent["job"]["name"]) == (ROOT, "demux.round")
        assert parent["run"]["runId"] == first["run"]["runId"]
    started = [event["run"]["runId"] for event in (first, *others) if event["eventType"] == "START"]
    assert len(set(started)) == len(started) == 3


def test_the_namespace_of_the_jobs_is_what_the_environment_says() -> None:
    events = events_of(done("chess"), environ={"OPENLINEAGE_NAMESPACE": "games"})
    assert {event["job"]["namespace"] for event in events} == {"games"}


@pytest.mark.parametrize("game", ["Chess", "a'b; drop table x", "../..", "\x00", "日本" * 100])
def test_every_event_is_as_the_specification_asks_whatever_a_game_is_called(game: str) -> None:
    events = events_of(done(game), failed("go"))
    assert [mistakes(event) for event in events] == [[]] * 8


def test_the_schema_of_the_tests_finds_mistakes() -> None:
    (event, *_) = events_of(done("chess"))
    event["run"]["runId"] = "r1"
    del event["producer"]
    event["job"]["facets"]["jobType"].pop("integration")
    assert {mistake.partition(":")[0] for mistake in mistakes(event)} == {"$", "$.job.facets.jobType", "$.run.runId"}


def observe(root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a process that observes one round with these variables, and wait for its end."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENLINEAGE"))}
    words = [sys.executable, "-m", "tests.support.observed", str(root)]
    return subprocess.run(words, env={**environ, **variables}, capture_output=True, text=True, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["OPENLINEAGE_URL", "OPENLINEAGE__TRANSPORT__URL"])
def test_a_process_sends_its_events_over_http_with_the_columns_of_its_tables(tmp_path: Path, by: str) -> None:
    write_bronze(str(tmp_path / "bronze"), bronze_row("chess", 0))
    with receiving() as receiver:
        more = {} if by == "OPENLINEAGE_URL" else {"OPENLINEAGE__TRANSPORT__TYPE": "http"}
        ran = observe(tmp_path, **{by: receiver.url}, **more)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Lineage\n", "")
    assert {path for path, _ in receiver.got} == {"/api/v1/lineage"}
    events = [body for _, body in receiver.got]
    assert [mistakes(event) for event in events] == [[]] * 8
    assert [event["eventType"] for event in events].count("START") == 4
    (bronze,) = (
        event
        for event in events
        if event["eventType"] == "COMPLETE" and event["inputs"] and "bronze" in event["job"]["name"]
    )
    columns = [each["name"] for each in bronze["outputs"][0]["facets"]["schema"]["fields"]]
    assert {"game_name", "schema_id", "payload"} <= set(columns)


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["silent", None])
def test_an_endpoint_that_fails_or_does_not_answer_fails_no_command(tmp_path: Path, path: str | None) -> None:
    with receiving() as receiver:
        url = f"http://127.0.0.1:{free_ports(1)[0]}" if path is None else receiver.url
        ran = observe(tmp_path, OPENLINEAGE_URL=url, OPENLINEAGE_ENDPOINT=path or "api/v1/lineage")
    assert (ran.returncode, ran.stdout) == (0, "Lineage\n")
    assert "Traceback" not in ran.stderr
    assert receiver.got == []
