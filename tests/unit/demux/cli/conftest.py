"""A workspace, a working directory with settings and a wheel, and the command line there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from demux.cli.app import app
from demux.core.errors import DemuxError, ExitCode
from tests.fakes.workspace.fake import FakeWorkspace
from tests.fakes.workspace.http.server import serving
from tests.support.databricks.deployments import WHEEL_NAME, Demux, small_wheel, write_settings


@pytest.fixture
def fake() -> Iterator[FakeWorkspace]:
    workspace = FakeWorkspace()
    workspace.catalog.add("volume", "main.ops.wheels")
    with serving(workspace):
        yield workspace


@pytest.fixture
def here(fake: FakeWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with settings and a wheel; the environment has the login of the workspace."""
    for name in os.environ:
        if name.startswith(("DATABRICKS_", "DEMUX_")):
            monkeypatch.delenv(name)
    for name, value in fake.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "no.cfg"))
    monkeypatch.chdir(tmp_path)
    small_wheel(tmp_path)
    write_settings(tmp_path)
    return tmp_path


@pytest.fixture
def demux(here: Path) -> Demux:
    def call(*words: str, exit_code: ExitCode = ExitCode.OK) -> str:
        wheel = () if words[0] in {"destroy", "grants"} or "--wheel" in words else ("--wheel", WHEEL_NAME)
        result = CliRunner().invoke(app, [*words, *wheel])
        if isinstance(result.exception, DemuxError):
            raise result.exception
        assert result.exit_code == exit_code, result.output
        return result.output.rstrip()

    return call
