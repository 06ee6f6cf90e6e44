"""The fleet's own writes of quarantine, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from demux.errors import TaskInterrupted
from demux.lock import unlocked
from demux.position import Position
from demux.storage.files import Storage
from deserializer.fleet.quarantine import Quarantine


def test_quarantine_is_made_and_written_while_its_lock_is_held(tmp_path: Path) -> None:
    path = str(tmp_path / "quarantine")
    held: list[tuple[str, int, int]] = []

    def version() -> int:
        return DeltaTable(path).version() if DeltaTable.is_deltatable(path) else -1

    @contextmanager
    def lock(table: str) -> Iterator[None]:
        before = version()
        yield
        held.append((table, before, version()))

    quarantine = Quarantine(Storage(), path, str(tmp_path / "dropped"), "fleet", lock)
    for index in (1, 2):
        quarantine.append([], {"chess": Position(0, index)})
    assert held == [(path, -1, 1), (path, 1, 2)]
    assert quarantine.position("chess") == Position(0, 2)


def test_bad_rows_that_another_process_has_put_here_meanwhile_are_not_put_here_twice(tmp_path: Path) -> None:
    def opened() -> Quarantine:
        table = Quarantine(Storage(), str(tmp_path / "quarantine"), str(tmp_path / "dropped"), "fleet", unlocked)
        table.refresh()
        return table

    opened().append([], {"go": Position(0, 1)})
    stopped, running = opened(), opened()
    running.append([], {"chess": Position(0, 2)})
    with pytest.raises(TaskInterrupted, match="Another process put bad rows"):
        stopped.append([], {"chess": Position(0, 2), "go": Position(0, 2)})
    # of other games it may
    stopped.append([], {"go": Position(0, 2)})
    running.refresh()
    assert [running.position(key) for key in ("chess", "go")] == [Position(0, 2), Position(0, 2)]
