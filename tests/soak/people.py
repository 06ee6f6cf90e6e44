"""Whose records there are, and whether those that were to be forgotten are gone; without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from demux.core.root.layout import Layout
from demux.core.root.lock import Access, hold_root
from tests.support.flow.root import rows

_PERSON = re.compile(rb"user_[0-9]{4}")


def people(root: Path) -> Mapping[str, frozenset[str]]:
    """Return the ids of the records that name somebody, by name, in whichever table their bytes are."""
    layout = Layout(str(root))
    # between the steps of others: files that were just replaced may be gone
    with hold_root(str(root), "soak", wait=True, access=Access.TURNS):
        bronze = [(row["record_id"], row["payload"]) for row in rows(layout.bronze)]
        quarantine = [(row["record_id"], row["bytes"]) for row in rows(layout.quarantine)]
    found: dict[str, set[str]] = {}
    for record_id, content in (*bronze, *quarantine):
        for name in _PERSON.findall(content or b""):
            found.setdefault(name.decode(), set()).add(record_id)
    return {name: frozenset(ids) for name, ids in found.items()}


def remembered(root: Path, forgotten: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Yield each table that still has a record of somebody who was forgotten; the commands must be at rest."""
    layout = Layout(str(root))
    gone = {record_id: name for name, ids in forgotten.items() for record_id in ids}
    tables = [layout.bronze, layout.quarantine, *sorted(map(str, (root / "silver").glob("*")))]
    for table in tables:
        ids = [row["_record_id"] if "_record_id" in row else row["record_id"] for row in rows(table)]
        left = sorted(set(ids) & gone.keys())
        if left:
            yield f"{table} still has {len(left)} records of forgotten people, such as {left[0]} of {gone[left[0]]}"
