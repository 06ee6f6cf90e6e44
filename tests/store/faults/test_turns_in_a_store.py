"""Commands that take turns on a root in a store, from whatever machine."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from demux.core.errors import ConcurrentChange, RootLocked
from demux.core.root.lock import Access, Hold, LeasedHold, hold_of, hold_root
from demux.core.storage.files import Storage


def test_a_command_in_its_pause_lets_those_in_who_take_turns_and_nobody_of_its_own_kind(
    in_store: Storage, tmp_path: Path
) -> None:
    root, stop = f"s3://demux/{tmp_path.name}", threading.Event()

    def of(command: str, access: Access = Access.ALONE) -> Hold:
        return hold_of(in_store, root, command, access)

    with hold_root(root, "run", wait=False, hold=of("run")) as run:
        assert run.tables is not None
        visits = run.visits
        with run.tables(f"{root}/quarantine"), pytest.raises(RootLocked, match="`demux run`"):
            of("maintain", Access.TURNS).take(wait=False)
        with run.away(stop):
            with hold_root(root, "maintain", wait=False, hold=of("maintain", Access.TURNS)):
                pass
            with pytest.raises(RootLocked) as refused:
                of("ingest").take(wait=False)
            said = refused.value.message
            assert said.startswith(f"`demux run` (process {os.getpid()} on ")
            assert f"is at work on {root}, since 20" in said
            with pytest.raises(ConcurrentChange), run.tables(f"{root}/quarantine"):
                pass
        assert run.visits == visits + 1
        with run.away(stop):
            pass
        assert run.visits == visits + 1
        # who only looks asks for nothing
        looking = of("status", Access.LOOK)
        with hold_root(root, "status", wait=False, hold=looking), looking.away(stop):
            pass
    with hold_root(root, "ingest", wait=False, hold=of("ingest")):
        pass


def test_a_folder_has_locks_of_the_operating_system(in_store: Storage, tmp_path: Path) -> None:
    assert not isinstance(hold_of(in_store, str(tmp_path), "run", Access.ALONE), LeasedHold)
