"""One command at a time on a root: the second is refused with a sentence, or waits if told to."""

from __future__ import annotations

import os
import threading
import time

import pytest

from demux.core.root.lock import hold_root
from tests.support.flow.process import DEMUX, Command, run
from tests.support.flow.root import Root


def test_a_second_command_on_the_same_root_is_refused_and_says_who_is_at_work(root: Root) -> None:
    with hold_root(str(root.folder), "rebuild", wait=False):
        said = run([DEMUX, "run", "--root", str(root.folder)])
    assert (said.code, said.out) == (5, "")
    assert said.err == (
        f"ROOT_LOCKED `demux rebuild` (process {os.getpid()}) is at work on {root.folder}.\n"
        "Wait for it to end, or give --wait to do so automatically.\n"
    )


def test_a_command_that_only_looks_needs_no_lock(root: Root, command: Command) -> None:
    root.send([])
    with hold_root(str(root.folder), "run", wait=False):
        assert command("status", "--root", str(root.folder)).code == 0


def test_a_command_that_is_told_to_wait_goes_on_when_the_other_has_ended(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, order = threading.Event(), []
    sleep = time.sleep

    def pause(seconds: float) -> None:
        waiting.set()
        sleep(seconds)

    # who waits for a lock pauses between two tries
    monkeypatch.setattr("filelock._api.time.sleep", pause)

    def second() -> None:
        with hold_root(str(root.folder), "run", wait=True):
            order.append("second")

    thread = threading.Thread(target=second)
    with hold_root(str(root.folder), "ingest", wait=False):
        thread.start()
        assert waiting.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
