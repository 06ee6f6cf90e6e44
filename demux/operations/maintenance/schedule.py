"""When maintenance is due, and how far back it may reach. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from demux.core.errors import SettingsInvalid

# readers open a version and then its files, and a job may take its time in between
SAFE = timedelta(hours=1)


def next_due(since: datetime, every: timedelta | None) -> datetime | None:
    """Return when maintenance is due next; None for never.

    Args:
        since: when it ended last, or when somebody first looked.
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
            "Keep files for an hour at least (maintain.keep: 7d), or give --force where nobody reads the tables.",
        )


def _shown(keep: timedelta) -> str:
    return f"{int(keep.total_seconds())} seconds"
