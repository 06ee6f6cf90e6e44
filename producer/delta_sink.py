"""The producer's target without Kafka: a Delta table with the columns of a topic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from demux.core.delta.scan import data_files, read_table, scan
from demux.core.errors import SettingsInvalid, StorageFailed
from demux.core.storage.files import Storage
from producer.records import Records, TargetPosition

# the table's description: deltalake refuses table properties that are not Delta's own
MARK = "Simulated events, made by the demux producer"
_HEADER_NAME, _HEADER_VALUE = "made-by", b"demux producer"
_APPLICATION = "demux producer"
_NO_POSITION = TargetPosition({})
_SHOWN = ("value", "key", "partition", "timestamp", "offset")
_DATA = re.compile(r"part-[^/]*\.parquet")


class DeltaSink:
    """A Delta table with the columns of a Kafka topic.

    Columns: value BINARY, topic STRING, partition INT, offset BIGINT (dense in each partition), timestamp TIMESTAMP
    (UTC, microseconds), key BINARY, headers ARRAY<STRUCT<key STRING, value BINARY>>.
    """

    def __init__(self, path: str, topic: str = "events", storage: Storage | None = None) -> None:
        self._path = path
        self._files = storage or Storage()
        self._topic = topic
        self._position: TargetPosition | None = None
        self._last_commit: int | None = None

    def position(self) -> TargetPosition:
        """Return the table's end offsets; 0 without a table."""
        with self._storage():
            table = self._table()
            if table is not None and not _is_marked(table):
                raise SettingsInvalid(
                    f"The table {self._path} was not made by the producer.",
                    "Name a path where there is no table yet, as simulated events do not belong among real ones.",
                    path=self._path,
                )
            self._last_commit = None if table is None else table.transaction_version(_APPLICATION)
            self._position = _NO_POSITION if table is None else _position_of(self._files, self._path)
        return self._position

    def write(self, records: Records) -> None:
        """Append the records in one commit, with the offsets that follow; not safe to repeat, it appends again."""
        before = self.position() if self._position is None else self._position
        offsets, after = _offsets(records.partitions, before)
        with self._storage():
            table = self._table()
            if table is not None and table.transaction_version(_APPLICATION) != self._last_commit:
                raise StorageFailed(f"Another producer wrote to {self._path}.", "Run again when it has ended.")
            # each commit names the application: what another producer commits in between is seen here, or by Delta
            self._files.write_table(
                self._path,
                self._arrow(records, offsets),
                "append",
                table=table,
                name=self._topic,
                description=MARK,
                transactions={_APPLICATION: after.sent},
            )
        self._position, self._last_commit = after, after.sent

    def newest(self, count: int) -> Records:
        """Return the newest records by timestamp, at most `count`, oldest first."""
        position = self.position()
        with self._storage():
            table = self._table()
            if table is None or count <= 0:
                return Records([], [], np.empty(0, np.int32), np.empty(0, np.int64))
            first = {partition: end - count for partition, end in position.next_offsets.items()}
            tails = [(pc.field("partition") == one) & (pc.field("offset") >= at) for one, at in first.items()]
            files = data_files(table, self._path, pc.field("max.offset") >= min(first.values()))
            fields = [pa.schema(table.schema()).field(name) for name in _SHOWN]
            found = pa.Table.from_batches(scan(self._files, files, fields), pa.schema(fields))
            found = found.filter(reduce(or_, tails))
        ordered = found.sort_by([("timestamp", "ascending"), ("partition", "ascending"), ("offset", "ascending")])
        last = ordered.slice(max(0, len(ordered) - count))
        return Records(
            last["value"].to_pylist(),
            last["key"].to_pylist(),
            last["partition"].to_numpy(),
            last["timestamp"].cast(pa.int64()).to_numpy(),
        )

    def remove(self) -> bool:
        """Remove the table's files if it carries the mark, and its folder if nothing else is in it."""
        with self._storage():
            table = self._table()
            if table is None or not _is_marked(table):
                return False
            # the log goes last: until then a second call can finish what the first began
            data = [file.key for file in self._files.files(self._path) if _DATA.fullmatch(file.key)]
            self._files.delete(f"{self._path}/{key}" for key in data)
            self._files.delete_folder(f"{self._path}/_delta_log")
            if self._files.is_folder(self._path) and not self._files.names(self._path):
                self._files.delete_folder(self._path)
        self._position, self._last_commit = None, None
        return True

    def _table(self) -> DeltaTable | None:
        return self._files.table(self._path) if self._files.table_exists(self._path) else None

    def _arrow(self, records: Records, offsets: npt.NDArray[np.int64]) -> pa.Table:
        count = len(records.values)
        header = pa.StructArray.from_arrays(
            [pa.repeat(_HEADER_NAME, count), pa.repeat(_HEADER_VALUE, count)], names=["key", "value"]
        )
        return pa.table(
            {
                "value": pa.array(records.values, pa.binary()),
                "topic": pa.repeat(self._topic, count),
                "partition": pa.array(records.partitions, pa.int32()),
                "offset": pa.array(offsets, pa.int64()),
                "timestamp": pa.array(records.timestamps_us, pa.int64()).cast(pa.timestamp("us", "UTC")),
                "key": pa.array(records.keys, pa.binary()),
                "headers": pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), header),
            }
        )

    @contextmanager
    def _storage(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise StorageFailed(
                f"The table {self._path} cannot be used: {str(error).splitlines()[0]}.",
                "Check space and permissions, and that no other producer is at work; then run again.",
                path=self._path,
            ) from error


def _is_marked(table: DeltaTable) -> bool:
    return table.metadata().description == MARK


def _position_of(storage: Storage, path: str) -> TargetPosition:
    columns = read_table(storage, path, ["partition", "offset"])
    newest = columns.group_by("partition").aggregate([("offset", "max")]).to_pylist()
    return TargetPosition({row["partition"]: row["offset_max"] + 1 for row in newest})


def _offsets(partitions: npt.NDArray[np.int32], before: TargetPosition) -> tuple[npt.NDArray[np.int64], TargetPosition]:
    """Return the offset of each record, and the position after them."""
    offsets = np.empty(len(partitions), np.int64)
    following = dict(before.next_offsets)
    for partition in np.unique(partitions).tolist():
        mine = np.flatnonzero(partitions == partition)
        start = following.get(partition, 0)
        offsets[mine] = start + np.arange(len(mine))
        following[partition] = start + len(mine)
    return offsets, TargetPosition(following)
