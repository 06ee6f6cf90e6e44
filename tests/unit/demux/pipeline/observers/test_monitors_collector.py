"""Traces and metrics over the network: a receiver has them, and no endpoint fails or holds up a command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.http_receiver import receiving
from tools.servers.go.collector import start_collector
from tools.servers.ports import free_ports

Received = Callable[..., tuple[subprocess.CompletedProcess[str], list[Mapping[str, Any]]]]

pytestmark = pytest.mark.thorough
PROGRAM = [sys.executable, "-m", "tests.support.observed", "/lake/demux"]


def observe(**variables: str) -> subprocess.CompletedProcess[str]:
    """Run a process that observes one round with these variables, and wait for its end."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENLINEAGE"))}
    return subprocess.run(PROGRAM, env={**environ, **variables}, capture_output=True, text=True, check=False)


@pytest.fixture(params=["receiver", pytest.param("collector", marks=pytest.mark.long)])
def received(request: pytest.FixtureRequest, tmp_path: Path) -> Received:
    """Observes a round with these variables, and gives what an endpoint got; a collector takes a minute to build."""

    def by_collector(**variables: str) -> tuple[subprocess.CompletedProcess[str], list[Mapping[str, Any]]]:
        with start_collector(tmp_path) as collector:
            done = observe(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **variables)
            return done, collector.stop_and_read()

    def by_receiver(**variables: str) -> tuple[subprocess.CompletedProcess[str], list[Mapping[str, Any]]]:
        with receiving() as receiver:
            done = observe(OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **variables)
            return done, [body for _, body in receiver.got]

    return by_collector if request.param == "collector" else by_receiver


def attributes_of(one: Mapping[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in one.get("attributes", [])}


def test_an_endpoint_has_the_spans_and_metrics_of_a_command_when_it_has_ended(received: Received) -> None:
    done, messages = received(OTEL_RESOURCE_ATTRIBUTES="deployment=test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Telemetry\n", "")
    resources = [one for message in messages for one in message.get("resourceSpans", [])]
    resource = attributes_of(resources[0]["resource"])
    assert (resource["service.name"], resource["deployment"]) == ("demux", "test")
    spans = [span for one in resources for scope in one["scopeSpans"] for span in scope["spans"]]
    assert sorted(span["name"] for span in spans) == [
        *["demux.batch"] * 2,
        *["demux.game"] * 2,
        "demux.round",
        *(f"demux.stage.{stage}" for stage in ("close", "commit", "decode", "ingest", "plan")),
    ]
    (failed,) = (span for span in spans if span.get("status", {}).get("code") == 2)
    assert attributes_of(failed)["demux.game"] == "go"
    metrics = {
        metric["name"]: (metric["unit"], metric)
        for message in messages
        for one in message.get("resourceMetrics", [])
        for scope in one["scopeMetrics"]
        for metric in scope["metrics"]
    }
    unit, rows = metrics["demux.game.rows"]
    assert unit == "{row}"
    found = {attributes_of(point)["demux.outcome"]: point["asInt"] for point in rows["sum"]["dataPoints"]}
    assert found == {"silver": "9", "quarantine": "1"}
    assert metrics["demux.game.bytes"][0] == "By"


def test_the_name_of_the_service_is_what_the_environment_says(received: Received) -> None:
    _, messages = received(OTEL_SERVICE_NAME="games", OTEL_METRICS_EXPORTER="none")
    assert ["resourceSpans" in message for message in messages] == [True]
    assert attributes_of(messages[0]["resourceSpans"][0]["resource"])["service.name"] == "games"


def test_without_the_variables_nothing_observes_and_no_library_is_loaded() -> None:
    done = observe(
        OTEL_SERVICE_NAME="demux", OTEL_SDK_DISABLED="true", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
    code = "import sys, tests.support.observed; print([name for name in sys.modules if name.startswith('opentel')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.mark.parametrize("path", ["/500", "/silent", None])
def test_an_endpoint_that_fails_or_does_not_answer_fails_no_command(path: str | None) -> None:
    with receiving() as receiver:
        url = f"http://127.0.0.1:{free_ports(1)[0]}" if path is None else f"{receiver.url}{path}"
        done = observe(OTEL_EXPORTER_OTLP_ENDPOINT=url)
    assert (done.returncode, done.stdout) == (0, "Telemetry\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"OTEL_TRACES_EXPORTER": "carrier-pigeon"}, "no installed package has an exporter carrier-pigeon"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "an exporter otlp_proto_grpc"),
    ],
)
def test_an_exporter_that_is_not_there_is_one_sentence(variables: dict[str, str], sentence: str) -> None:
    done = observe(**variables)
    assert done.returncode == 0
    said, none = done.stdout.splitlines()
    assert sentence in said
    assert none == ""


def test_what_an_application_has_set_up_itself_is_used_as_it_is() -> None:
    code = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from demux.core.settings.settings import Settings
from demux.pipeline.observers.monitors import monitors_of
from tests.support.observed import done, observe_round

kept, mine = InMemorySpanExporter(), TracerProvider()
mine.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(mine)
with mine.get_tracer("application").start_as_current_span("job"):
    observe_round(monitors_of(Settings(root="/lake"), {"OTEL_TRACES_EXPORTER": "otlp"}, print), [done("chess")])
names = {span.context.span_id: span.name for span in kept.get_finished_spans()}
print(*[names[span.parent.span_id] for span in kept.get_finished_spans() if span.name == "demux.round"])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "job\n"
