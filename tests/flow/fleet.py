"""Rounds by the engine of the settings, and crashes between what they commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from demux.cli.fleet import engine_of
from demux.cli.workplace import Workplace
from install_workflow.run import Observer, Round, RunTasks, run_round
from tests.flow.root import Root

EVENT = 'syntax = "proto3"; message Event { string name = 1; }'
FLEET = {"engine": "fleet", "retry_wait_s": 0.0}


def run(root: Root, place: Workplace | None = None, engine: RunTasks | None = None) -> Round:
    """One round by the engine of the settings, or by this one, which knows what it did in rounds before."""
    place = place or root.workplace()
    return run_round(
        root.spark,
        root.settings,
        place.control,
        place.ingest,
        place.deserialize,
        place.stop,
        Observer(),
        elsewhere=engine or engine_of(place, place.settings.round_engine),
    )


def without_errors(ended: Round) -> Round:
    assert [str(end.error) for end in ended.ended if end.error is not None] == []
    return ended


def settled(root: Root) -> int:
    """How many rows are in silver and in quarantine."""
    return sum(len(found) for table, (_, found) in root.everything().items() if table != "bronze")


@contextmanager
def crash_after(owner: type | ModuleType, method: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        original = getattr(owner, method)

        def then_crash(*args: object, **options: object) -> object:
            original(*args, **options)
            raise KeyboardInterrupt

        patch.setattr(owner, method, then_crash)
        yield
