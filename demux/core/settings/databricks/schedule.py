"""What starts the jobs, whom they notify, and when they count as unhealthy."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from demux.core.settings.databricks.values import Email, is_remote
from demux.core.settings.types import Section, rule

Pause = Annotated[int, Field(ge=60, le=24 * 3600)]


class ScheduleKind(Enum):
    """What starts a run."""

    NONE = "none"
    CRON = "cron"
    CONTINUOUS = "continuous"
    FILE_ARRIVAL = "file_arrival"
    TABLE_UPDATE = "table_update"


class TableCondition(Enum):
    """How many of the tables must have changed before a run starts."""

    ANY = "any"
    ALL = "all"


def _quartz(text: str) -> str:
    fields = text.split()
    if len(fields) not in {6, 7} or not re.fullmatch(r"[\w ,\-*/?#]+", " ".join(fields), re.ASCII):
        raise ValueError("expected a Quartz expression of 6 or 7 fields, seconds first, such as 0 0 5 * * ?")
    if (fields[3] == "?") == (fields[5] == "?"):
        raise ValueError("expected ? for the day of the month or for the day of the week, and not for both")
    return " ".join(fields)


def _arrival(url: str) -> str:
    if not is_remote(url):
        raise ValueError("expected a folder of an external location, such as s3://bucket/folder/, or /Volumes/…")
    return f"{url.rstrip('/')}/"


def _table(name: str) -> str:
    parts = name.split(".")
    if len(parts) != 3 or not all(re.fullmatch(r"[^\s/`{}$]{1,255}", part) for part in parts):
        raise ValueError("expected catalog.schema.table")
    return name


class ScheduleSettings(Section):
    """What starts a run of the jobs."""

    kind: ScheduleKind = Field(
        default=ScheduleKind.NONE,
        description="none: by hand, or by another job. cron: at times. continuous: again as soon as a run ends. "
        "file_arrival: when files come under `url`. table_update: when `tables` change.",
    )
    cron: Annotated[str, AfterValidator(_quartz)] | None = Field(
        default=None, description="Quartz expression, seconds first, such as 0 0 5 * * ? for five in the morning."
    )
    timezone: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_+/-]{0,63}$")] = Field(
        default="UTC", description="Time zone of `cron`, such as Europe/Berlin."
    )
    url: Annotated[str, AfterValidator(_arrival)] | None = Field(
        default=None, description="Folder of an external location, or of a volume, to watch for files."
    )
    tables: tuple[Annotated[str, AfterValidator(_table)], ...] = Field(
        default=(), description="Tables to watch, each catalog.schema.table."
    )
    condition: TableCondition = Field(
        default=TableCondition.ANY, description="Whether any or all of the tables must have changed."
    )
    min_interval_s: Pause | None = Field(
        default=None, description="Least seconds between two runs that files or tables start, 60 or more."
    )
    quiet_s: Pause | None = Field(
        default=None, description="Seconds without further files or changes before a run starts, 60 or more."
    )
    paused: bool = Field(default=False, description="Keep the schedule, and start nothing by it.")

    @model_validator(mode="after")
    def _consistent(self) -> ScheduleSettings:
        kind = self.kind
        waits = kind in {ScheduleKind.FILE_ARRIVAL, ScheduleKind.TABLE_UPDATE}
        given = (
            ("cron", self.cron is not None, kind is ScheduleKind.CRON),
            ("url", self.url is not None, kind is ScheduleKind.FILE_ARRIVAL),
            ("tables", bool(self.tables), kind is ScheduleKind.TABLE_UPDATE),
        )
        waiting = (("min_interval_s", self.min_interval_s), ("quiet_s", self.quiet_s))
        wrong = [f"kind {kind.value} needs {name}" for name, is_given, needed in given if needed and not is_given]
        wrong += [f"{name} is not for kind {kind.value}" for name, is_given, needed in given if is_given and not needed]
        wrong += [f"{name} is not for kind {kind.value}" for name, value in waiting if value is not None and not waits]
        if wrong:
            raise rule("; ".join(wrong))
        return self


_MAX_WEBHOOKS = 3

Emails = tuple[Email, ...]
Webhooks = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")], ...], Field(max_length=_MAX_WEBHOOKS)
]
Threshold = Annotated[int, Field(ge=1, le=2**63 - 1)]


class NotificationSettings(Section):
    """Who is notified of runs."""

    emails_on_start: Emails = Field(default=(), description="E-mail addresses to tell when a run starts.")
    emails_on_success: Emails = Field(default=(), description="E-mail addresses to tell when a run succeeds.")
    emails_on_failure: Emails = Field(default=(), description="E-mail addresses to tell when a run fails.")
    emails_on_slow: Emails = Field(
        default=(), description="E-mail addresses to tell when a run takes longer than health.duration_s."
    )
    emails_on_backlog: Emails = Field(
        default=(), description="E-mail addresses to tell when a stream is further behind than health.backlog_* say."
    )
    webhooks_on_start: Webhooks = Field(
        default=(),
        description="Ids of the workspace's notification destinations (Slack, Teams, a webhook) to call when a "
        "run starts, 3 at most.",
    )
    webhooks_on_success: Webhooks = Field(default=(), description="Ids to call when a run succeeds, 3 at most.")
    webhooks_on_failure: Webhooks = Field(default=(), description="Ids to call when a run fails, 3 at most.")
    webhooks_on_slow: Webhooks = Field(
        default=(), description="Ids to call when a run takes longer than health.duration_s, 3 at most."
    )
    webhooks_on_backlog: Webhooks = Field(
        default=(), description="Ids to call when a stream is further behind than health.backlog_* say, 3 at most."
    )


class HealthSettings(Section):
    """From when on a run is too slow, or its streams are too far behind; the platform measures it."""

    duration_s: Threshold | None = Field(default=None, description="Seconds that a run may take.")
    backlog_s: Threshold | None = Field(default=None, description="Seconds that a stream may be behind its source.")
    backlog_records: Threshold | None = Field(default=None, description="Records that a stream may be behind.")
    backlog_bytes: Threshold | None = Field(default=None, description="Bytes that a stream may be behind.")
    backlog_files: Threshold | None = Field(default=None, description="Files that a stream may be behind.")

    @property
    def has_backlog(self) -> bool:
        """Whether there is a limit for how far a stream is behind."""
        return any(getattr(self, name) is not None for name in type(self).model_fields if name.startswith("backlog_"))


def missing_limits(health: HealthSettings, notifications: NotificationSettings) -> list[str]:
    """Return a sentence for each notification that no event would ever send."""
    wrong = []
    for event, key, is_given in (
        ("slow", "health.duration_s", health.duration_s is not None),
        ("backlog", "one of health.backlog_*", health.has_backlog),
    ):
        asked = [name for way in ("emails", "webhooks") if getattr(notifications, name := f"{way}_on_{event}")]
        wrong += [f"notifications.{name} needs {key}" for name in asked if not is_given]
    return wrong
