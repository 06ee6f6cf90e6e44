"""Commands that take turns on a root: who gets in when, and what the one that was away is told."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from demux.core.errors import RootLocked
from demux.core.root.lock import Access, Hold, hold_root

PATIENCE_S = 30.0


def step(root: str, command: str) -> AbstractContextManager[Hold]:
    return hold_root(root, command, wait=False, access=Access.TURNS)


@contextmanager
def another_thread(work: threading.Thread) -> Iterator[None]:
    work.start()
    yield
    work.join(PATIENCE_S)
    assert not work.is_alive()


def test_a_command_in_its_pause_lets_those_in_who_take_turns_and_nobody_of_its_own_kind(tmp_path: Path) -> None:
    root, stop = str(tmp_path), threading.Event()
    with hold_root(root, "run", wait=False) as run:
        before = run.visits
        with run.away(stop):
            with step(root, "maintain"):
                pass
            with pytest.raises(RootLocked) as refused, hold_root(root, "destroy", wait=False):
                pass
            assert refused.value.message == f"`demux run` (process {os.getpid()}) is at work on {root}."
        assert run.visits == before + 1
        with run.away(stop):
            pass
        assert run.visits == before + 1


def test_whoever_takes_turns_is_kept_out_of_a_step_and_told_who_is_in_it(tmp_path: Path) -> None:
    root = str(tmp_path)
    with hold_root(root, "run", wait=False), pytest.raises(RootLocked, match="`demux run`"), step(root, "maintain"):
        pass
    with step(root, "forget"), pytest.raises(RootLocked, match="`demux forget`"), step(root, "maintain"):
        pass


def test_who_waits_has_the_next_turn_however_short_the_pause_is(tmp_path: Path) -> None:
    root, stop, order = str(tmp_path), threading.Event(), list[str]()

    def waiting() -> None:
        with hold_root(root, "maintain", wait=True, access=Access.TURNS):
            order.append("maintain")

    with hold_root(root, "run", wait=False) as run, another_thread(threading.Thread(target=waiting)):
        # it stands at the door once somebody else cannot
        while not order:
            with run.away(stop):
                pass
        order.append("run")
    assert order == ["maintain", "run"]


def test_who_holds_the_root_knows_whether_somebody_waits_for_it(tmp_path: Path) -> None:
    root, stop = str(tmp_path), threading.Event()

    def waiting() -> None:
        with hold_root(root, "maintain", wait=True, access=Access.TURNS):
            pass

    with hold_root(root, "run", wait=False) as run:
        before = run.visits
        assert not run.is_wanted()
        with another_thread(threading.Thread(target=waiting)):
            while not run.is_wanted():
                pass
            with run.away(stop):
                pass
        assert (run.is_wanted(), run.visits) == (False, before + 1)


def test_steps_of_two_commands_never_overlap(tmp_path: Path) -> None:
    root, stop = str(tmp_path), threading.Event()
    inside, most, steps = 0, 0, 0
    count = threading.Lock()

    def command(name: str) -> None:
        nonlocal inside, most, steps
        with hold_root(root, name, wait=True, access=Access.TURNS) as hold:
            for _ in range(5):
                with count:
                    inside, steps = inside + 1, steps + 1
                    most = max(most, inside)
                with count:
                    inside -= 1
                with hold.away(stop):
                    pass

    threads = [threading.Thread(target=command, args=(name,)) for name in ("backfill", "maintain", "forget")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (most, steps) == (1, 15)


def test_a_command_that_is_to_stop_does_not_wait_for_the_step_of_another(tmp_path: Path) -> None:
    root, stop = str(tmp_path), threading.Event()
    with hold_root(root, "run", wait=False) as run:
        away = run.away(stop)
        away.__enter__()
        with step(root, "rebuild"):
            stop.set()
            with pytest.raises(KeyboardInterrupt):
                away.__exit__(None, None, None)
            # whoever waits at the door is let in, and nobody else has the root
            with pytest.raises(RootLocked, match="`demux rebuild`"), step(root, "maintain"):
                pass
    with hold_root(root, "run", wait=False):
        pass


def test_a_command_that_only_looks_is_never_kept_out(tmp_path: Path) -> None:
    root = str(tmp_path)
    looking = hold_root(root, "status", wait=False, access=Access.LOOK)
    with hold_root(root, "run", wait=False), looking as look, look.away(threading.Event()):
        assert look.visits == 0


def test_a_root_elsewhere_has_no_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = "s3://bucket/root"
    with hold_root(root, "run", wait=False) as run, run.away(threading.Event()), step(root, "maintain") as other:
        pass
    assert run.visits == other.visits == 0
    assert list(tmp_path.iterdir()) == []
