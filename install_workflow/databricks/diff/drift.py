"""Tells fields of a deployed job that the server or a policy filled in from those that were set by hand. Pure.

A field that our settings leave open is compared with what the server had made of it after our own last write, where
that is on record; where it is not, the table in `fields.py` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from install_workflow.databricks.diff.fields import CLUSTER, JOB, FieldOrigin, JobField, ValueComparison, field_of

Object = Mapping[str, Any]

_SUBJECTS = {"tasks": "task", "job_clusters": "cluster", "environments": "environment"}


@dataclass(frozen=True, slots=True)
class SettingsPair:
    """Two settings from `comparable`, without what is no difference.

    Attributes:
        before: as the job is, without what the server or a policy filled in.
        after: as apply leaves it: what we send, and what the server had filled in where a hand changed that.
        by_hand: subject and path of each difference that a hand made in a field that we leave open.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    by_hand: frozenset[tuple[str, str]]


def sides(deployed: Object, desired: Object, filled: Object | None = None) -> SettingsPair:
    """Return both sides of a job.

    Args:
        filled: from `filled_in`, after our last write; None where that is not known.
    """
    found = _DriftComparison()
    before, after = found.compare(JOB, _ThreeWay(deployed, desired, filled), "job", "")
    return SettingsPair(before, after, frozenset(found.by_hand))


def filled_in(deployed: Object, desired: Object) -> dict[str, Any]:
    """Return the fields that the server added to the settings; both from `comparable`, deployed as just written.

    A cluster is in it even where nothing was added: nothing is known of one that is not.
    """
    added = _added(deployed, desired)
    added.pop("run_as", None)
    clusters: dict[str, Any] = {
        key: {} for key in desired.get("job_clusters", {}) if key in deployed.get("job_clusters", {})
    }
    return {**added, "job_clusters": {**clusters, **added.get("job_clusters", {})}} if clusters else added


def _added(deployed: Object, desired: Object) -> dict[str, Any]:
    result = {}
    for name, value in deployed.items():
        if name not in desired:
            result[name] = value
        elif (
            isinstance(value, Mapping)
            and isinstance(desired[name], Mapping)
            and (inner := _added(value, desired[name]))
        ):
            result[name] = inner
    return result


@dataclass(frozen=True, slots=True)
class _ThreeWay:
    """An object as deployed, as desired, and what was filled in; None = not known."""

    deployed: Object
    desired: Object
    filled: Object | None

    def inner(self, name: str) -> _ThreeWay:
        filled = None if self.filled is None else self.filled.get(name, {})
        return _ThreeWay(self.deployed.get(name, {}), self.desired.get(name, {}), filled)


class _DriftComparison:
    def __init__(self) -> None:
        self.by_hand: set[tuple[str, str]] = set()

    def compare(
        self, kind: str | FieldOrigin, three: _ThreeWay, subject: str, path: str, has_policy: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return before and after of an object; `kind` is its type, or the origin of the user's names and values."""
        has_policy = has_policy or (kind == CLUSTER and "policy_id" in three.desired)
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for name in {**three.deployed, **three.desired, **(three.filled or {})}:
            field = JobField(kind) if isinstance(kind, FieldOrigin) else field_of(kind, name)
            inner = f"{path}.{name}" if path else name
            old, new = self._field(field, name, three, subject, inner, has_policy)
            before |= {} if old is None else {name: old}
            after |= {} if new is None else {name: new}
        return before, after

    def _field(
        self, field: JobField, name: str, three: _ThreeWay, subject: str, path: str, has_policy: bool
    ) -> tuple[Any, Any]:
        old, new = three.deployed.get(name), three.desired.get(name)
        if field.form is ValueComparison.KEYED and field.of:
            return self._keyed(field, name, three)
        if field.form in {ValueComparison.OBJECT, ValueComparison.MAP} and not (
            field.counts_empty and (old is None or new is None)
        ):
            of = field.of if field.form is ValueComparison.OBJECT else field.origin
            before, after = self.compare(of, three.inner(name), subject, path, has_policy)
            # a schedule comes and goes as a whole
            whole = field.form is ValueComparison.OBJECT and field.origin is FieldOrigin.OURS
            return (before or None, after or None) if whole or before == after else (before, after)
        if new is not None:
            return old, new
        if three.filled is None:
            if old is None or _may_be_filled_in(field, old, three.deployed, has_policy):
                return None, None
        else:
            new = three.filled.get(name)
            if old == new or (_is_known(field, old, three.deployed) and _is_known(field, new, three.deployed)):
                return None, None
        # one of our own fields may as well be gone from the settings
        if new is not None or field.origin is not FieldOrigin.OURS:
            self.by_hand.add((subject, path.removeprefix("new_cluster.").removeprefix("spec.")))
        return old, new

    def _keyed(
        self, field: JobField, name: str, three: _ThreeWay
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        inner = three.inner(name)
        before, after = dict(inner.deployed), dict(inner.desired)
        for key in before.keys() & after.keys():
            known = inner.filled.get(key) if inner.filled is not None else None
            three_of_key = _ThreeWay(before[key], after[key], known)
            before[key], after[key] = self.compare(field.of, three_of_key, f"{_SUBJECTS[name]} {key}", "")
        return before or None, after or None


def _is_known(field: JobField, value: Any, beside: Object) -> bool:
    """Return whether the value is one that the server is known to choose, or none."""
    return value is None or value in field.defaults or (bool(field.same_as) and value == beside.get(field.same_as))


def _may_be_filled_in(field: JobField, value: Any, beside: Object, has_policy: bool) -> bool:
    """Return whether the server, or the cluster's policy, may have given the field its value."""
    if has_policy or _is_known(field, value, beside):
        return True
    return field.origin is FieldOrigin.SERVER and not field.defaults and field.same_as not in beside
