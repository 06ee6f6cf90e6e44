"""The fleet's own writes of quarantine, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable

from deserializer.fleet.pending import Position
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

    quarantine = Quarantine(path, str(tmp_path / "dropped"), "fleet", lock)
    for index in (1, 2):
        quarantine.append([], {"chess": Position(0, index)})
    assert held == [(path, -1, 1), (path, 1, 2)]
    assert quarantine.position("chess") == Position(0, 2)
