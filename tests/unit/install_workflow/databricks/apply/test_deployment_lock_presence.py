"""A process that holds its place is alive as long as it runs, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from install_workflow.databricks.apply.deployment_lock import LocalPresence

CHECKOUT = Path(__file__).parents[5]
HOLDER = """
import sys
from pathlib import Path
from install_workflow.databricks.apply.deployment_lock import LocalPresence
presence = LocalPresence(Path(sys.argv[1]))
presence.hold("12-ab")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_process_is_alive_until_it_is_killed_and_dead_ever_after(tmp_path: Path) -> None:
    presence = LocalPresence(tmp_path / "new")
    assert not presence.is_dead("12-ab")
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "new")]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PYTHONPATH": str(CHECKOUT)}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert not presence.is_dead("12-ab")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    assert presence.is_dead("12-ab")
    # looking changes nothing
    assert presence.is_dead("12-ab")
    assert not presence.is_dead("13-cd")


def test_who_leaves_is_not_taken_for_dead_and_leaves_no_file(tmp_path: Path) -> None:
    one, other = LocalPresence(tmp_path), LocalPresence(tmp_path)
    one.hold("1-a")
    one.hold("1-a")
    assert not other.is_dead("1-a")
    one.leave("1-a")
    one.leave("1-a")
    assert not other.is_dead("1-a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../../other", "", "a/b", "a" * 101, "a\0b"])
def test_a_name_that_no_process_has_is_never_looked_up(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    (tmp_path / "other.lock").touch()
    assert not LocalPresence(folder).is_dead(name)


def test_where_no_file_can_be_made_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    presence = LocalPresence(tmp_path / "file" / "below")
    presence.hold("1-a")
    assert not presence.is_dead("1-a")
    presence.leave("1-a")
