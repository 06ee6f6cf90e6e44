"""Triggers, notifications and health rules of a job, as the Jobs API has them. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import timedelta
from enum import Enum
from typing import Any

from demux.core.settings.databricks.access import RunAsSettings
from demux.core.settings.databricks.deployment import DatabricksSettings
from demux.core.settings.databricks.schedule import HealthSettings, ScheduleKind, ScheduleSettings, TableCondition


class RunEvent(Enum):
    """An event of a run that is notified; the values are fields of the Jobs API."""

    START = "on_start"
    SUCCESS = "on_success"
    FAILURE = "on_failure"
    SLOW = "on_duration_warning_threshold_exceeded"
    BACKLOG = "on_streaming_backlog_exceeded"


# of a job that another one starts, and of one without streams
OF_STREAMS = (RunEvent.BACKLOG,)
OF_RUNS = (RunEvent.START, RunEvent.SUCCESS, RunEvent.FAILURE)

# metric of the Jobs API, and the event that it causes, by setting
_METRICS = {
    "duration_s": ("RUN_DURATION_SECONDS", RunEvent.SLOW),
    "backlog_bytes": ("STREAMING_BACKLOG_BYTES", RunEvent.BACKLOG),
    "backlog_files": ("STREAMING_BACKLOG_FILES", RunEvent.BACKLOG),
    "backlog_records": ("STREAMING_BACKLOG_RECORDS", RunEvent.BACKLOG),
    "backlog_s": ("STREAMING_BACKLOG_SECONDS", RunEvent.BACKLOG),
}


def start_fields(settings: ScheduleSettings) -> dict[str, Any]:
    """Return the fields of a job that say what starts it; none for a job that is started by hand."""
    match settings.kind:
        case ScheduleKind.NONE:
            return {}
        case ScheduleKind.CRON:
            cron = {"quartz_cron_expression": settings.cron, "timezone_id": settings.timezone}
            return {"schedule": {**cron, **_paused(settings)}}
        case ScheduleKind.CONTINUOUS:
            return {"continuous": _paused(settings)}
        case ScheduleKind.FILE_ARRIVAL:
            return {"trigger": {"file_arrival": {"url": settings.url, **_waits(settings)}, **_paused(settings)}}
        case ScheduleKind.TABLE_UPDATE:
            tables = {"table_names": list(settings.tables), "condition": _condition(settings.condition)}
            return {"trigger": {"table_update": {**tables, **_waits(settings)}, **_paused(settings)}}


def started_every(interval: timedelta, settings: ScheduleSettings) -> dict[str, Any]:
    """Return the fields of a job that starts so often, in whole hours or days; less than an hour is one."""
    hours = max(1, math.ceil(interval / timedelta(hours=1)))
    count, unit = (hours, "HOURS") if hours % 24 else (hours // 24, "DAYS")
    return {"trigger": {"periodic": {"interval": count, "unit": unit}, **_paused(settings)}}


def notification_fields(
    databricks: DatabricksSettings, events: Collection[RunEvent] = tuple(RunEvent)
) -> dict[str, Any]:
    """Return the fields of a job for its health and for notifications, as far as they are about these events."""
    settings = databricks.notifications
    asked = [(each.name.lower(), each) for each in RunEvent if each in events]
    emails = {event.value: getattr(settings, f"emails_on_{name}") for name, event in asked}
    webhooks = {event.value: getattr(settings, f"webhooks_on_{name}") for name, event in asked}
    fields = {
        "email_notifications": {event: sorted(set(to)) for event, to in emails.items() if to},
        "webhook_notifications": {
            event: [{"id": each} for each in sorted(set(to))] for event, to in webhooks.items() if to
        },
        "health": _health(databricks.health, events),
    }
    return {name: value for name, value in fields.items() if value}


def _health(settings: HealthSettings, events: Collection[RunEvent]) -> dict[str, Any]:
    limits = [(*each, getattr(settings, name)) for name, each in _METRICS.items()]
    rules = [
        {"metric": metric, "op": "GREATER_THAN", "value": most}
        for metric, event, most in limits
        if most is not None and event in events
    ]
    return {"rules": rules} if rules else {}


def run_as(settings: RunAsSettings) -> dict[str, Any]:
    """Return the field of a job that says whom it runs as; none for whoever makes it."""
    if settings.user is not None:
        return {"run_as": {"user_name": settings.user}}
    if settings.service_principal is not None:
        return {"run_as": {"service_principal_name": settings.service_principal}}
    return {}


def _paused(settings: ScheduleSettings) -> dict[str, str]:
    return {"pause_status": "PAUSED" if settings.paused else "UNPAUSED"}


def _waits(settings: ScheduleSettings) -> dict[str, int]:
    waits = {
        "min_time_between_triggers_seconds": settings.min_interval_s,
        "wait_after_last_change_seconds": settings.quiet_s,
    }
    return {name: seconds for name, seconds in waits.items() if seconds is not None}


def _condition(condition: TableCondition) -> str:
    match condition:
        case TableCondition.ANY:
            return "ANY_UPDATED"
        case TableCondition.ALL:
            return "ALL_UPDATED"
