"""The fleet's own writes of quarantine, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from demux.core.errors import ConcurrentChange
from demux.core.root.lock import no_lock
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset
from deserializer.silver.file_quarantine import Quarantine


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
        quarantine.append([], {"chess": BronzeOffset(0, index)})
    assert held == [(path, -1, 1), (path, 1, 2)]
    assert quarantine.position("chess") == BronzeOffset(0, 2)


def test_bad_rows_that_another_process_has_put_here_meanwhile_are_not_put_here_twice(tmp_path: Path) -> None:
    def opened() -> Quarantine:
        table = Quarantine(Storage(), str(tmp_path / "quarantine"), str(tmp_path / "dropped"), "fleet", no_lock)
        table.refresh()
        return table

    opened().append([], {"go": BronzeOffset(0, 1)})
    stopped, running = opened(), opened()
    running.append([], {"chess": BronzeOffset(0, 2)})
    with pytest.raises(ConcurrentChange, match="Another process put bad rows"):
        stopped.append([], {"chess": BronzeOffset(0, 2), "go": BronzeOffset(0, 2)})
    # of other games it may
    stopped.append([], {"go": BronzeOffset(0, 2)})
    running.refresh()
    assert [running.position(key) for key in ("chess", "go")] == [BronzeOffset(0, 2), BronzeOffset(0, 2)]
