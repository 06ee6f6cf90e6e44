"""Faults of the ledger and of quarantine."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault

LEDGER = (
    Fault(
        "moving-row-called-lost",
        "demux/operations/reconcile/balance.py",
        "self.due > self.silver + self.quarantine + self.dropped else None",
        "self.due > self.silver + self.quarantine_now + self.dropped else None",
        "tests/unit/demux/operations/reconcile/test_balance.py::test_a_row_that_a_replay_moves_while_it_is_read_is_right",
    ),
    Fault(
        "hole-behind-the-last-offset",
        "demux/operations/reconcile/offsets.py",
        "ranges += [(seen.last + 1, end)] if end is not None and seen.last + 1 < end else []",
        "ranges += [(seen.last + 1, end)] if end is not None and seen.last + 2 < end else []",
        "tests/unit/demux/operations/reconcile/test_offsets.py::test_a_hole_of_one_offset_is_told_wherever_it_is",
    ),
    Fault(
        "last-batch-never-due",
        "demux/operations/reconcile/location_sql.py",
        "NULLIF(batch_id <= bound, FALSE)",
        "NULLIF(batch_id < bound, FALSE)",
        "tests/unit/demux/operations/reconcile/test_location_sql.py::test_a_row_of_the_last_batch_that_a_game_has_read_is_due",
    ),
)
