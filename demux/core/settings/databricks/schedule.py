"""What starts the jobs, whom they notify, and when they count as unhealthy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, Field, model_validator

from demux.core.settings.databricks.quartz import quartz_mistake
from demux.core.settings.databricks.values import Email, is_remote, matching
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


# the schemes that an external location may have
_EXTERNAL = ("/Volumes/", "s3://", "abfss://", "gs://", "r2://")
_WILDCARD = re.compile(r"[*?\[\]{}$]")
# an offset, which Java takes as a zone
_OFFSET = re.compile(r"(GMT|UTC)[+-]\d{1,2}(:\d\d)?")


def _quartz(text: str) -> str:
    if mistake := quartz_mistake(text):
        raise ValueError(f"expected {mistake}")
    return " ".join(text.split())


def _timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # a machine may have no list of zones
        if (zones := available_timezones()) and not _OFFSET.fullmatch(name):
            nearest = get_close_matches(name, zones, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise ValueError(f"expected a time zone, such as Europe/Berlin{hint}") from None
    return name


def _arrival(url: str) -> str:
    if not is_remote(url) or not url.startswith(_EXTERNAL):
        raise ValueError("expected a folder of an external location, such as s3://bucket/folder/, or /Volumes/…")
    if _WILDCARD.search(url):
        raise ValueError("must not have wildcards: name the folder above, as all folders below it are watched too")
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
    timezone: Annotated[str, AfterValidator(_timezone)] = Field(
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
        arrival, update = ScheduleKind.FILE_ARRIVAL, ScheduleKind.TABLE_UPDATE
        given = (
            ("cron", self.cron is not None, (ScheduleKind.CRON,)),
            ("url", self.url is not None, (arrival,)),
            ("tables", bool(self.tables), (update,)),
        )
        further = (
            ("condition", self.condition is not TableCondition.ANY, (update,)),
            ("min_interval_s", self.min_interval_s is not None, (arrival, update)),
            ("quiet_s", self.quiet_s is not None, (arrival, update)),
        )
        wrong = [f"kind {kind.value} needs {name}" for name, is_given, of in given if kind in of and not is_given]
        wrong += [
            f"{name} is for kind {' or '.join(each.value for each in of)}, not {kind.value}"
            for name, is_given, of in (*given, *further)
            if is_given and kind not in of
        ]
        wrong += [f"tables has {name} twice" for name in sorted({n for n in self.tables if self.tables.count(n) > 1})]
        if wrong:
            raise rule("; ".join(wrong))
        return self


_Destination = Annotated[
    str,
    matching(
        r"[A-Za-z0-9-]{1,64}",
        "the id of a notification destination, no URL (`databricks notification-destinations list`)",
    ),
]


_MAX_WEBHOOKS = 3

Emails = tuple[Email, ...]
Webhooks = Annotated[tuple[_Destination, ...], Field(max_length=_MAX_WEBHOOKS)]
Threshold = Annotated[int, Field(ge=1, le=2**63 - 1)]


class NotificationSettings(Section):
    """Who is notified of runs."""

    hints: ClassVar[Mapping[str, str]] = {
        f"slack_on_{event}": f"it is webhooks_on_{event} here, with the id of a notification destination for Slack"
        for event in ("start", "success", "failure", "slow", "backlog")
    }

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

    hints: ClassVar[Mapping[str, str]] = {
        "backlog_rows": "it is backlog_records here",
        "rules": "they are made of duration_s, backlog_s, backlog_records, backlog_bytes and backlog_files",
    }

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
