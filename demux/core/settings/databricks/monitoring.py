"""Who is notified of runs, and from when on a run is too slow or too far behind."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from demux.core.settings.databricks.values import Email
from demux.core.settings.types import Section

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
    """Return what is said of notifications that nothing would ever send."""
    wrong = []
    for event, key, is_given in (
        ("slow", "health.duration_s", health.duration_s is not None),
        ("backlog", "one of health.backlog_*", health.has_backlog),
    ):
        asked = [name for way in ("emails", "webhooks") if getattr(notifications, name := f"{way}_on_{event}")]
        wrong += [f"notifications.{name} needs {key}" for name in asked if not is_given]
    return wrong
