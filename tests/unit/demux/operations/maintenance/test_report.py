"""What was done to the tables of a kind together."""

from __future__ import annotations

from demux.core.errors import TaskFailed
from demux.operations.maintenance.report import MaintenanceSums, Table, TableKind, TableMaintenance, sums


def done(kind: TableKind, *numbers: int, removed: int | None = 0) -> TableMaintenance:
    before, after, size, rows = numbers
    return TableMaintenance(Table(kind, "/root/x", "x"), before, after, size, removed, removed, rows)


def test_what_was_done_is_added_up_by_kind_in_the_order_of_the_kinds() -> None:
    failed = TableMaintenance(
        Table(TableKind.SILVER, "/root/silver/go", "silver/go"), error=TaskFailed("It broke.", "Look.")
    )
    found = sums(
        [
            done(TableKind.CONTROL, 4, 1, 100, 7),
            done(TableKind.SILVER, 9, 2, 50, 0, removed=3),
            failed,
            done(TableKind.SILVER, 1, 1, 5, 0, removed=4),
        ]
    )
    assert found == (
        MaintenanceSums(TableKind.SILVER, 3, 10, 3, 55, 7, 7, 0),
        MaintenanceSums(TableKind.CONTROL, 1, 4, 1, 100, 0, 0, 7),
    )


def test_what_nobody_counts_of_one_table_is_not_known_of_its_kind() -> None:
    (found,) = sums([done(TableKind.SILVER, 1, 1, 1, 0, removed=4), done(TableKind.SILVER, 1, 1, 1, 0, removed=None)])
    assert (found.removed, found.removed_bytes, found.files_before) == (None, None, 2)
    assert sums([]) == ()
