"""When the tables were maintained, and what of it is under way: one small file below the root, written in one step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from demux.core.errors import SettingsInvalid
from demux.core.root.layout import Layout
from demux.operations.maintenance.compaction_plan import LastSort


@dataclass(frozen=True, slots=True)
class SparkTableState:
    """A table that only Spark maintains, as it was the last time.

    Attributes:
        changed_ms: when that was first seen.
        vacuumed_ms: when its old files were removed last; None for never.
    """

    version: int
    changed_ms: int
    vacuumed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceState:
    """The state of maintenance between two runs.

    Attributes:
        since: when it ended last, or when it was first requested (UTC); None before that.
        retiring: the id of rows that are on their way out of bronze; None for none.
        ordered: by name of a table, when its rows were brought together last.
        seen: by name of a table that only Spark maintains.
    """

    since: datetime | None = None
    finished: bool = False
    retiring: str | None = None
    ordered: Mapping[str, LastSort] = field(default_factory=dict)
    seen: Mapping[str, SparkTableState] = field(default_factory=dict)


def read_state(layout: Layout) -> MaintenanceState:
    """Return the state; an empty one before the first time."""
    if not layout.storage.exists(layout.maintenance):
        return MaintenanceState()
    return from_text(layout.storage.read_text(layout.maintenance))


def write_state(layout: Layout, state: MaintenanceState) -> None:
    """Write the state, in one step."""
    layout.storage.write_text(layout.maintenance, to_text(state))


def to_text(state: MaintenanceState) -> str:
    """Return the file's text: JSON."""
    content: dict[str, Any] = {
        "since": None if state.since is None else state.since.isoformat(),
        "finished": state.finished,
        "retiring": state.retiring,
        "ordered": {name: {"columns": one.columns, "at_ms": one.at_ms} for name, one in state.ordered.items()},
        "seen": {name: [one.version, one.changed_ms, one.vacuumed_ms] for name, one in state.seen.items()},
    }
    return json.dumps(content, indent=1)


def from_text(text: str) -> MaintenanceState:
    """Return the state of a text that `to_text` made."""
    content = json.loads(text)
    since = content["since"]
    return MaintenanceState(
        None if since is None else datetime.fromisoformat(since),
        content["finished"],
        content["retiring"],
        {name: LastSort(tuple(one["columns"]), one["at_ms"]) for name, one in content["ordered"].items()},
        {name: SparkTableState(*values) for name, values in content["seen"].items()},
    )


# readers open a version and then its files, and a job may take its time in between
SAFE = timedelta(hours=1)


def count_from(layout: Layout, now: datetime) -> datetime | None:
    """Return when maintenance ended last (UTC), from now on where the count has not begun; None without bronze."""
    state = read_state(layout)
    if state.since is None and layout.storage.table_exists(layout.bronze):
        state = replace(state, since=now)
        write_state(layout, state)
    return state.since


def next_due(since: datetime | None, every: timedelta | None) -> datetime | None:
    """Return when maintenance is due next; None for never, or before the first round that counts."""
    return None if since is None or every is None else since + every


def require_safe(keep: timedelta, *, force: bool) -> None:
    """Check that files are kept long enough for readers of older versions.

    Raises:
        SettingsInvalid: it is less than an hour, and `force` is off.
    """
    if keep < SAFE and not force:
        raise SettingsInvalid(
            f"maintain.keep is {_shown(keep)}, and readers may still be at files of a moment ago.",
            "Keep files for an hour at least (maintain.keep: 7d), or give --force if no reader uses the tables.",
        )


def _shown(keep: timedelta) -> str:
    return f"{int(keep.total_seconds())} seconds"
