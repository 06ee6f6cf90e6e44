"""Settings of both engines, what a round left, and crashes between its commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

import pytest

from demux.pipeline.round import Round
from tests.support.flow.root import Root

EVENT = 'syntax = "proto3"; message Event { string name = 1; }'
FLEET: Mapping[str, object] = {"engine": "fleet", "retry_wait_s": 0.0}
# a streaming query for each game costs forty times as much as the fleet: only for tests whose subject is streams
STREAM: Mapping[str, object] = {"engine": "stream", "retry_wait_s": 0.0}


def without_errors(ended: Round) -> Round:
    assert [str(end.error) for end in ended.ended if end.error is not None] == []
    return ended


def settled(root: Root) -> int:
    """How many rows are in silver and in quarantine."""
    return sum(len(found) for table, (_, found) in root.everything().items() if table != "bronze")


@contextmanager
def crash_after(
    owner: type | ModuleType, method: str, death: type[BaseException] = KeyboardInterrupt
) -> Iterator[None]:
    """Crash when a call is done; a stream's batch must die of an `Exception`, or its query waits for ever."""
    with pytest.MonkeyPatch.context() as patch:
        original = getattr(owner, method)

        def then_crash(*args: object, **options: object) -> object:
            original(*args, **options)
            raise death

        patch.setattr(owner, method, then_crash)
        yield
