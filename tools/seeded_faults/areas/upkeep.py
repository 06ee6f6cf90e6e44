"""What goes for good: old files, old rows, what somebody asked to forget."""

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
        "demux/operations/maintenance/bronze_retention.py",
        'F.col("batch_id") <= F.col("bound")',
        'F.col("batch_id") <= F.col("bound") + 1',
        "tests/flow/operations/test_maintaining.py"
        "::test_rows_that_wait_are_read_after_files_were_joined_and_removed_and_older_rows_retired[fleet]",
    ),
    Fault(
        "forgotten-row-decoded-again",
        "deserializer/redecode/processed_rows.py",
        "    if not forgotten.limit(1).count():",
        "    if forgotten.limit(1).count():",
        "tests/spark/silver/test_processed_rows.py::test_a_day_has_its_own_rows_and_what_is_to_be_forgotten_is_in_none",
    ),
)
