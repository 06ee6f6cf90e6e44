"""Faults of maintenance and erasure."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault

UPKEEP = (
    Fault(
        "unread-file-removed",
        "demux/operations/maintenance/run.py",
        "removed = [key for key, name in names.items() if name not in kept]",
        "removed = list(names)",
        "tests/flow/operations/test_maintaining.py::test_rows_that_wait_are_read_after_files_were_joined_and_removed_and_older_rows_retired[fleet]",
    ),
    Fault(
        "retention-takes-unread-rows",
        "demux/operations/maintenance/retention.py",
        'F.col("batch_id") <= F.col("bound")',
        'F.col("batch_id") <= F.col("bound") + 1',
        "tests/flow/operations/test_maintaining.py"
        "::test_rows_that_wait_are_read_after_files_were_joined_and_removed_and_older_rows_retired[fleet]",
    ),
    Fault(
        "rows-that-bronze-lacks-are-replaced",
        "deserializer/fleet/replaced_rows.py",
        'lacking = chosen.filter(pc.invert(pc.is_in(chosen.column("_record_id"), known)))',
        "lacking = chosen.slice(0, 0)",
        "tests/unit/deserializer/fleet/test_replaced_rows.py"
        "::test_records_that_bronze_lacks_are_counted_and_nothing_is_written",
    ),
)
