from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.servers.errors import PortTaken, ServerFailed, last_lines
from tools.servers.ports import HOST, free_ports, is_free
from tools.servers.process import Launch, Life, ServerProcess, started_at

PROJECT = Path(__file__).parents[4]
PATIENCE_S = 20.0

# starts a server that would live ten minutes, says its id, and waits
STARTER = """
import sys
from pathlib import Path
from tools.servers.process import Launch, Life, ServerProcess
folder = Path(sys.argv[1])
launch = Launch("sleeper", ["sleep", "600"], folder, folder / "log", {}, (), Life[sys.argv[2]])
print(ServerProcess(launch).pid, flush=True)
sys.stdin.read()
"""


def launch(folder: Path, *words: str, ports: tuple[int, ...] = (), life: Life = Life.WITH_STARTER) -> Launch:
    return Launch("server", words, folder, folder / "log", {}, ports, life)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        # only a pause between two looks
        time.sleep(0.02)


def server_of_a_killed_starter(folder: Path, life: Life) -> int:
    """The id of a server whose starter was killed."""
    words = [sys.executable, "-c", STARTER, str(folder), life.name]
    with subprocess.Popen(words, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert started_at(pid) is not None
        starter.kill()
    return pid


def test_a_server_dies_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    pid = server_of_a_killed_starter(tmp_path, Life.WITH_STARTER)
    wait_until(lambda: started_at(pid) is None)


def test_a_detached_server_outlives_its_starter(tmp_path: Path) -> None:
    pid = server_of_a_killed_starter(tmp_path, Life.DETACHED)
    try:
        assert started_at(pid) is not None
    finally:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: started_at(pid) is None)


def test_a_server_that_is_stopped_is_gone(tmp_path: Path) -> None:
    server = ServerProcess(launch(tmp_path, "sleep", "600"))
    server.stop()
    assert started_at(server.pid) is None
    server.stop()
    server.kill()


def test_a_server_that_ends_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    server = ServerProcess(launch(tmp_path, "sh", "-c", "echo no such disk >&2; exit 7"))
    with pytest.raises(ServerFailed, match=r"(?s)server ended with code 7.*no such disk.*log"):
        server.wait_until(lambda: False, timeout_s=PATIENCE_S)


def test_a_server_that_never_answers_is_killed(tmp_path: Path) -> None:
    server = ServerProcess(launch(tmp_path, "sleep", "600"))
    with pytest.raises(ServerFailed, match="gave no answer in 0 s"):
        server.wait_until(lambda: False, timeout_s=0.1)
    assert started_at(server.pid) is None


def test_a_server_is_not_started_where_another_one_would_answer(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"127.0.0.1:{port}"):
            ServerProcess(launch(tmp_path, "sleep", "600", ports=(port,)))


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)


def test_the_end_of_a_log_leaves_out_what_tells_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "07:00:00 [main] ERROR Server - it failed\njava.lang.IllegalStateException: why\n\tat a.b.c(D.java:1)\n"
        "Caused by: java.io.IOException: really why\n\t... 12 more\n07:00:01 [main] INFO Server - shutting down\n"
    )
    assert last_lines(log).splitlines() == [
        "07:00:00 [main] ERROR Server - it failed",
        "java.lang.IllegalStateException: why",
        "Caused by: java.io.IOException: really why",
    ]


def test_the_end_of_a_quiet_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_lines(log) == "(nothing was logged)"
    log.write_text("".join(f"07:00:{second:02} INFO line\n" for second in range(30)))
    assert last_lines(log).splitlines() == [f"07:00:{second:02} INFO line" for second in range(15, 30)]
