"""What maintenance did, as people read it."""

from __future__ import annotations

from datetime import datetime, timezone
from io import StringIO

from rich.console import Console

from demux.cli.repair.maintain_text import done_text, next_line
from demux.core.errors import StorageFailed
from demux.operations.maintenance.report import HeldBack, Table, TableKind, TableMaintenance
from tests.conftest import Golden

SINCE = datetime(2026, 3, 1, 12, 30, tzinfo=timezone.utc)


def printed(done: list[TableMaintenance], held_back: list[HeldBack], *, dry_run: bool = False) -> str:
    text = StringIO()
    Console(file=text, width=80, color_system=None).print(done_text(done, held_back, dry_run=dry_run))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def table(kind: TableKind, name: str) -> Table:
    return Table(kind, f"/root/{name}", name)


def test_what_was_done_is_told_by_kind_with_what_failed_and_who_holds_files_back(golden: Golden) -> None:
    full = StorageFailed("The disk is full.", "Free space.")
    done = [
        TableMaintenance(table(TableKind.BRONZE, "bronze"), 4_200, 31, 3 * 2**30, 2_100, 2**31, 1_000_000),
        TableMaintenance(table(TableKind.QUARANTINE, "quarantine"), 16, 1, 70_000, None, None),
        TableMaintenance(table(TableKind.CONTROL, "control/rounds"), 90, 1, 1_500, 88, 999, 12),
        TableMaintenance(table(TableKind.SILVER, "silver/chess"), 20, 2, 12 * 2**20, 16, 2**20),
        *(TableMaintenance(table(TableKind.SILVER, f"silver/{name}"), error=full) for name in ("go", "tag")),
    ]
    held_back = [
        HeldBack("chess", SINCE, 1),
        HeldBack("[red]\x1b[31m将棋", None, 1_234),
        *(HeldBack(f"game_{number}", SINCE, None) for number in range(20)),
    ]
    golden("cli/maintain.txt", printed(done, held_back))


def test_a_forecast_says_that_nothing_was_changed() -> None:
    lines = printed(
        [TableMaintenance(table(TableKind.SILVER, "silver/chess"), 20, 2, 9)], [], dry_run=True
    ).splitlines()
    assert lines[-1] == "nothing was changed"
    assert lines[3].split() == ["silver", "1", "20", "2", "9", "B", "0", "0", "0", "B"]


def test_a_plan_says_when_maintenance_comes() -> None:
    assert next_line(SINCE, "1d") == "Maintenance: due at 2026-03-01 12:30 UTC, at the end of a round of `demux run`."
    assert next_line(None, "12h") == "Maintenance: 12h after the first round of `demux run`."
    assert next_line(SINCE, "never") == "Maintenance: only by `demux maintain`."
