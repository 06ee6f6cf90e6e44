"""Which monitors there are by the environment, and what is said where one cannot be had."""

from __future__ import annotations

import sys

import pytest

from demux.core.settings.settings import Settings
from demux.pipeline.observers.monitors import monitors_of

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A package that is not installed; its modules are not found."""
    package: str = request.param
    mine = "demux.pipeline.observers."
    ours = tuple(mine + name for name in ("signals", "spans", "lineage", "lineage_sender"))
    for name in [name for name in sys.modules if name.startswith(f"{package}.") or name in ours]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    return package


def test_without_variables_there_is_no_monitor() -> None:
    assert monitors_of(Settings(root="/lake"), {"PATH": "/bin"}, pytest.fail) == []


@pytest.mark.parametrize(
    ("without", "environ", "what", "extra"),
    [
        ("opentelemetry", ENDPOINT, "traces and metrics", "telemetry"),
        ("openlineage", {"OPENLINEAGE_URL": "http://127.0.0.1:1"}, "lineage", "lineage"),
    ],
    indirect=["without"],
)
def test_a_library_that_is_not_installed_is_one_sentence_and_no_error(
    without: str, environ: dict[str, str], what: str, extra: str
) -> None:
    said: list[str] = []
    for _ in range(2):
        assert monitors_of(Settings(root="/lake"), environ, said.append) == []
    assert said == [
        f"The environment asks for {what}, and nothing is sent. The Python package {without} is not installed. "
        f"Type: pip install 'protobuf-demux[{extra}]'"
    ]
