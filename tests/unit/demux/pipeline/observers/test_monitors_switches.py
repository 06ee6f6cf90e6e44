"""What the standard variables of OpenTelemetry ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from demux.pipeline.observers.monitors import lineage_asked, signals_asked

HTTP = ("otlp_proto_http",)
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        ({}, {}),
        ({"OTEL_SERVICE_NAME": "demux"}, {}),
        ({ENDPOINT: ""}, {}),
        ({ENDPOINT: "http://127.0.0.1:4318"}, {"traces": HTTP, "metrics": HTTP}),
        ({ENDPOINT: "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": " True "}, {}),
        ({ENDPOINT: "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "false"}, {"traces": HTTP, "metrics": HTTP}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, {"traces": HTTP}),
        ({ENDPOINT: "http://127.0.0.1:4318", "OTEL_METRICS_EXPORTER": "none"}, {"traces": HTTP}),
        ({"OTEL_TRACES_EXPORTER": "console,otlp,none,"}, {"traces": ("console", *HTTP)}),
        ({"OTEL_TRACES_EXPORTER": "otlp,otlp"}, {"traces": HTTP}),
        ({"OTEL_METRICS_EXPORTER": "console"}, {"metrics": ("console",)}),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            {"traces": ("otlp_proto_grpc",)},
        ),
    ],
)
def test_a_signal_is_sent_where_an_exporter_or_an_endpoint_is_named(
    environ: dict[str, str], asked: dict[str, tuple[str, ...]]
) -> None:
    assert signals_asked(environ) == asked


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        ({}, False),
        ({"OPENLINEAGE_NAMESPACE": "games"}, False),
        ({"OPENLINEAGE_URL": "http://127.0.0.1:5000"}, True),
        ({"OPENLINEAGE_URL": "http://127.0.0.1:5000", "OPENLINEAGE_DISABLED": "True"}, False),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "kafka"}, True),
        ({"OPENLINEAGE__TRANSPORT": "{}"}, True),
        ({"OPENLINEAGE_CONFIG": "/etc/openlineage.yml"}, True),
    ],
)
def test_lineage_is_sent_where_a_url_a_transport_or_settings_are_named(environ: dict[str, str], asked: bool) -> None:
    assert lineage_asked(environ) is asked


def test_lineage_is_sent_where_the_settings_of_its_client_are(tmp_path: Path) -> None:
    assert not lineage_asked({}, [tmp_path])
    (tmp_path / "openlineage.yml").write_text("transport: {type: console}", encoding="utf-8")
    assert lineage_asked({}, [tmp_path / "none", tmp_path])
