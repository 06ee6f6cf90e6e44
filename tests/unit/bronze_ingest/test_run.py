"""How many tasks take in a batch."""

from __future__ import annotations

import pytest

from bronze_ingest.run import tasks_for


@pytest.mark.parametrize(("rows", "tasks"), [(0, 1), (1, 1), (50_000, 1), (50_001, 2), (1_000_000, 20)])
def test_a_small_batch_is_one_task_and_a_large_one_many(rows: int, tasks: int) -> None:
    assert tasks_for(rows) == tasks
