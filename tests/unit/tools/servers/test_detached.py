from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from tools.servers.__main__ import main
from tools.servers.detached import Detached, down, known
from tools.servers.ports import HOST, free_ports
from tools.servers.process import started_at


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def write(folder: Path, *servers: Detached) -> None:
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps([asdict(server) for server in servers]))


def detached(process: subprocess.Popen[bytes], started: str) -> Detached:
    return Detached("server", "127.0.0.1:1", process.pid, started)


def test_what_was_started_is_stopped_and_its_data_removed(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    server = detached(sleeper, started_at(sleeper.pid) or "")
    write(tmp_path / "up", server)
    assert known(tmp_path / "up") == (server,)
    assert down(tmp_path / "up") == (server,)
    assert sleeper.wait() == -15
    assert not (tmp_path / "up").exists()


def test_another_process_with_the_same_id_is_left_alone(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    write(tmp_path / "up", detached(sleeper, "another time"))
    assert down(tmp_path / "up") == ()
    assert sleeper.poll() is None
    assert not (tmp_path / "up").exists()


def test_when_only_one_still_runs_up_says_what_to_do(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path / "up", detached(sleeper, started_at(sleeper.pid) or ""), Detached("other", "", sleeper.pid, "never")
    )
    assert main(["up", "--folder", str(tmp_path / "up")], {}) == 1
    assert capsys.readouterr().err == (
        "SERVER_FAILED Only the server still runs; another server died, or was never started.\n"
        "Stop what runs with `make down`, then start all with `make up`.\n"
    )
    assert sleeper.poll() is None


def test_a_port_that_is_taken_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (free,) = free_ports(1)
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        words = ["up", "--folder", str(tmp_path / "up"), "--broker-port", str(free), "--registry-port", str(port)]
        assert main(words, {}) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"PORT_TAKEN The schema registry cannot start: another process listens on 127.0.0.1:{port}.",
        "Stop that process, or give another port (see --help).",
    ]
    assert not (tmp_path / "up").exists()


@pytest.mark.parametrize("command", ["up", "down"])
def test_a_folder_of_somebody_else_is_not_touched(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter").write_text("dear")
    assert main([command, "--folder", str(tmp_path)], {}) == 1
    assert "FOLDER_TAKEN" in capsys.readouterr().err
    assert (tmp_path / "letter").read_text() == "dear"


def test_where_nothing_was_started_down_and_status_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    assert main(["down"], environment) == 0
    assert main(["status"], environment) == 3
    assert capsys.readouterr().out.splitlines() == [
        "Nothing of ours runs.",
        "Not all servers run; `make up` starts them.",
    ]
