"""When the tables were maintained, and what of it is under way: one small file below the root, written in one step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from demux.core.errors import SettingsInvalid
from demux.core.root.layout import Layout
from demux.core.storage import exists, read_text, replace_text
from demux.operations.maintenance.compaction_plan import LastSort


@dataclass(frozen=True, slots=True)
class SparkTableState:
    """A table that only Spark maintains, as it was the last time.

    Attributes:
        version: its version after that.
        changed_ms: when that was first seen.
        vacuumed_ms: when its old files were removed last; None for never.
    """

    version: int
    changed_ms: int
    vacuumed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceState:
    """What is known of maintenance.

    Attributes:
        since: when it ended last, or when it was first requested (UTC); None before that.
        finished: whether it ever ended.
        retiring: the id of rows that are on their way out of bronze; None for none.
        ordered: by name of a table, when its rows were brought together last.
        seen: by name of a table that only Spark maintains.
    """

    since: datetime | None = None
    finished: bool = False
    retiring: str | None = None
    ordered: Mapping[str, LastSort] = field(default_factory=dict)
    seen: Mapping[str, SparkTableState] = field(default_factory=dict)


def read_state(spark: SparkSession, layout: Layout) -> MaintenanceState:
    """Return what is known; nothing before the first time."""
    if not exists(spark, layout.maintenance):
        return MaintenanceState()
    return from_text(read_text(spark, layout.maintenance))


def write_state(spark: SparkSession, layout: Layout, state: MaintenanceState) -> None:
    """Write down what is known, in one step."""
    replace_text(spark, layout.maintenance, to_text(state))


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
    """Return what such a text says."""
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


def next_due(since: datetime, every: timedelta | None) -> datetime | None:
    """Return when maintenance is due next; None for never.

    Args:
        since: when it ended last, or when it was first checked.
        every: how often it is due.
    """
    return None if every is None else since + every


def require_safe(keep: timedelta, *, force: bool) -> None:
    """Let a time pass that readers of older versions can live with.

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
