"""When maintenance is due, and how far back it may reach."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from demux.core.errors import SettingsInvalid
from demux.operations.maintenance.state import next_due, require_safe

NOW = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def test_maintenance_is_due_so_long_after_the_last_one_or_never() -> None:
    assert next_due(NOW, timedelta(hours=36)) == datetime(2026, 3, 3, tzinfo=timezone.utc)
    assert next_due(NOW, None) is None


def test_files_are_kept_for_an_hour_at_least_unless_that_is_forced() -> None:
    require_safe(timedelta(hours=1), force=False)
    require_safe(timedelta(0), force=True)
    with pytest.raises(SettingsInvalid, match="keep is 3599 seconds") as refused:
        require_safe(timedelta(seconds=3599), force=False)
    assert refused.value.remedy.startswith("Keep files for an hour at least (maintain.keep: 7d), or give --force")
