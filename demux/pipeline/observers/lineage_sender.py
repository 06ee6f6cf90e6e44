"""Sends run events by OpenLineage's client in a thread of its own: a round waits for none of them."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent

from demux.core.delta.parquet_writer import schema_json
from demux.core.root.layout import Layout
from demux.core.storage.files import Storage
from demux.pipeline.observers.datasets import DatasetField, fields_of

_LOG = logging.getLogger("demux")
# two for each game of a large round
_MOST_EVENTS = 50_000
PATIENCE_S = 5.0


class LineageSender:
    """One client of the process, set up by the environment and openlineage.yml."""

    def __init__(self, client: OpenLineageClient) -> None:
        """Begin to send what comes."""
        self._client = client
        self._events: SimpleQueue[Callable[[], RunEvent] | None] = SimpleQueue()
        self._sent = 0
        self._thread = threading.Thread(target=self._work, daemon=True, name="lineage")
        self._thread.start()

    def send(self, make: Callable[[], RunEvent]) -> None:
        """Send the event that is made then, after those before it; too many at once are left out."""
        if self._events.qsize() < _MOST_EVENTS:
            self._events.put(make)
        else:
            _LOG.warning("an event of lineage is left out: %d wait to be sent", _MOST_EVENTS)

    def close(self) -> None:
        """Return when all is sent, or when nothing was sent for some seconds."""
        self._events.put(None)
        before = -1
        while self._thread.is_alive() and self._sent != before:
            before = self._sent
            self._thread.join(PATIENCE_S)

    def _work(self) -> None:
        while (make := self._events.get()) is not None:
            try:
                self._client.emit(make())
                self._sent += 1
            except Exception as error:  # a command must not fail for what monitors it
                _LOG.warning("an event of lineage was not sent: %s: %s", type(error).__name__, error)


class TableColumns:
    """Looks up the columns of tables; those of a table and its schema ids once."""

    def __init__(self, storage: Storage) -> None:
        """Prepare; nothing is read."""
        self._storage = storage
        self._known: dict[tuple[str, tuple[int, ...]], tuple[DatasetField, ...]] = {}

    def __call__(self, path: str, schema_ids: tuple[int, ...]) -> tuple[DatasetField, ...]:
        """Return the columns of the table at the path; none where only Spark opens it."""
        key = (path, schema_ids)
        if key not in self._known:
            table = self._storage.known_table(path)
            if table is None:
                return ()
            self._known[key] = fields_of(schema_json(table))
        return self._known[key]


# by root
_columns: dict[str, TableColumns] = {}


@cache
def sender() -> LineageSender:
    """Return the sender of this process."""
    found = LineageSender(OpenLineageClient())
    atexit.register(found.close)
    return found


def columns_of(layout: Layout) -> TableColumns:
    """Return what looks up the columns of the root's tables; the same one as long as the process lives."""
    return _columns.setdefault(layout.root, TableColumns(layout.storage))
