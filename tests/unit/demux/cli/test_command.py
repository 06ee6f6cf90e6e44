"""Settings of a command: defaults, file, environment, command line, in this order."""

from __future__ import annotations

import json
import logging
import os
import signal
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demux.cli.command import _signals_caught, log_to
from demux.cli.options import settings_of
from demux.core.errors import SettingsInvalid
from demux.core.root.layout import logs_of
from demux.core.settings.settings import Decoder, LogFormat, Settings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and an environment without our variables."""
    monkeypatch.chdir(tmp_path)
    for name in ("DEMUX_ROOT", "DEMUX_GAMES__LIMIT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_without_anything_the_defaults_hold_under_the_working_directory(elsewhere: Path) -> None:
    settings = settings_of(None, None, [])
    assert settings.root == str(elsewhere / "demux-data")
    assert settings.source_path == str(elsewhere / "demux-data/source")
    assert settings.registry_path == str(elsewhere / "demux-data/registry")
    paths = {"root", "source", "registry"}
    assert settings.model_dump(exclude=paths) == Settings().model_dump(exclude=paths)


def test_each_place_overrides_the_one_before(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = elsewhere / "demux.yml"
    file.write_text("games: {limit: 1}\nroot: from-file\ndecoder: arrow\n", encoding="utf-8")
    assert settings_of(file, None, []).games.limit == 1
    monkeypatch.setenv("DEMUX_GAMES__LIMIT", "2")
    assert settings_of(file, None, []).games.limit == 2
    settings = settings_of(file, "from-option", ["games.limit=3", "root=from-set"], "from_protobuf")
    assert settings.games.limit == 3
    assert settings.root == str(elsewhere / "from-option")
    assert settings.decoder is Decoder.FROM_PROTOBUF


def test_the_file_of_the_working_directory_is_found_by_itself(elsewhere: Path) -> None:
    (elsewhere / "demux.yml").write_text("games: {limit: 7}\n", encoding="utf-8")
    assert settings_of(None, None, []).games.limit == 7


@pytest.mark.parametrize("root", ["s3://bucket/root", "hdfs://host/root", "file:///data/root"])
def test_a_uri_stays_as_it_is(root: str) -> None:
    settings = settings_of(None, root, [])
    assert (settings.root, settings.source_path, settings.registry_path) == (root, f"{root}/source", f"{root}/registry")


def test_a_path_of_its_own_is_made_absolute_too(elsewhere: Path) -> None:
    settings = settings_of(None, None, ["source.path=in/wrappers", "registry.path=/protos"])
    assert settings.source_path == str(elsewhere / "in/wrappers")
    assert settings.registry_path == "/protos"


def test_a_value_may_have_an_equals_sign_in_it() -> None:
    settings = settings_of(None, None, ["spark.driver_memory =3g", "source.path=/a=b"])
    assert (settings.spark.driver_memory, settings.source_path) == ("3g", "/a=b")


@pytest.mark.parametrize("change", ["games.limit", "", "games.limit 5"])
def test_a_change_without_an_equals_sign_is_refused(change: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        settings_of(None, None, [change])
    assert refused.value.message == f"--set {change!r} has no `=`."


def test_all_mistakes_of_all_places_are_told_at_once(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = elsewhere / "demux.yml"
    file.write_text("gams: {}\n", encoding="utf-8")
    monkeypatch.setenv("DEMUX_GAMES__LIMIT", "many")
    with pytest.raises(SettingsInvalid) as refused:
        settings_of(file, None, ["run.retries=-1"])
    mistakes = refused.value.fields["mistakes"]
    assert isinstance(mistakes, tuple)
    assert [mistake.partition(":")[0] for mistake in mistakes] == [str(file), "DEMUX_GAMES__LIMIT", "command line"]


def test_logs_are_below_a_root_on_this_machine_and_beside_us_for_a_remote_one(elsewhere: Path) -> None:
    assert logs_of(settings_of(None, "root", []).root) == elsewhere / "root" / "logs"
    assert logs_of(settings_of(None, "s3://bucket/root", []).root) == Path("demux-logs")


@pytest.mark.parametrize("root", ["s3://bucket/root", "/Volumes/main/demux/files/root"])
def test_a_task_of_a_job_has_a_log_folder_of_its_own_and_none_in_a_volume(
    monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert logs_of(settings_of(None, root, []).root) == Path(tempfile.gettempdir()) / f"demux-logs-{os.getpid()}"


@pytest.mark.parametrize(("runtime", "printed"), [("", ""), ("17.3", "WARNING demux MainThread: it is late\n")])
def test_what_is_logged_in_a_job_is_in_its_output_too(
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    runtime: str,
    printed: str,
) -> None:
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    if runtime:
        monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", runtime)
    log = logging.getLogger("demux")
    log_to(elsewhere / "logs")
    try:
        log.warning("it is late")
    finally:
        while log.handlers:
            log.handlers.pop().close()
    said = capsys.readouterr().err
    assert said.endswith(printed) if runtime else said == ""
    assert (elsewhere / "logs" / "demux.log").read_text(encoding="utf-8").endswith("MainThread: it is late\n")


def test_the_log_of_a_command_is_json_where_the_settings_ask_for_it(tmp_path: Path) -> None:
    log = logging.getLogger("demux")
    log_to(tmp_path, LogFormat.JSON)
    try:
        log.warning("it is late", extra={"game": "chess"})
    finally:
        while log.handlers:
            log.handlers.pop().close()
    found = json.loads((tmp_path / "demux.log").read_text(encoding="utf-8"))
    assert (found["message"], found["game"]) == ("it is late", "chess")


def test_a_command_that_does_not_run_in_the_main_thread_leaves_signals_alone() -> None:
    def handler() -> object:
        with _signals_caught(threading.Event()):
            return signal.getsignal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handler).result(30) is before
    assert handler() is not before
    assert signal.getsignal(signal.SIGTERM) is before
