"""A job's settings as comparable data: without defaults, and without an order where there is none. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from install_workflow.databricks.diff.fields import JOB, FieldOrigin, JobField, ValueComparison, field_of
from install_workflow.databricks.jobs.job import JobJson


def comparable(settings: JobJson) -> dict[str, Any]:
    """Return the settings with defaults left out and lists without an order sorted, as `fields.py` has it.

    `tasks`, `job_clusters`, `environments` and `parameters` become objects by key, `run_as` the principal's name.
    """
    result = _object(JOB, settings)
    if isinstance(result.get("run_as"), Mapping):
        result["run_as"] = next(iter(result["run_as"].values()))
    return result


def _object(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    table = {name: field_of(kind, name) for name in fields}
    values = {name: _value(field, fields[name]) for name, field in table.items()}
    return {name: value for name, value in values.items() if not _is_default(table[name], value)}


def _value(field: JobField, value: Any) -> Any:
    match field.form:
        case ValueComparison.OBJECT if isinstance(value, Mapping):
            return _object(field.of, value)
        case ValueComparison.KEYED if isinstance(value, list | tuple):
            return _by_key((_object(field.of, entry) for entry in value), field.key)
        case ValueComparison.SET if isinstance(value, list | tuple):
            return sorted((_whole(entry) for entry in value), key=_text)
        case ValueComparison.MAP if isinstance(value, Mapping):
            return dict(value)
        case _:
            return _whole(value)


def _whole(value: Any) -> Any:
    """Return a value that is not taken apart, empty values in it left out."""
    if isinstance(value, Mapping):
        inner = {name: _whole(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value


def _by_key(entries: Iterable[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    return {entry[key]: {name: value for name, value in entry.items() if name != key} for entry in entries}


def _is_default(field: JobField, value: Any) -> bool:
    if field.origin is FieldOrigin.WRITE_ONLY or value is None:
        return True
    if not value:
        return not field.counts_empty
    # what the server chooses may be another value tomorrow: that is compared in `drift.py`
    return field.origin is FieldOrigin.OURS and value in field.defaults


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
