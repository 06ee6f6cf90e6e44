"""A machine's process: it takes turns with others by a lease, and in each turn commits the next row of one table.

It prints the number of each row that it committed, and `lost` where it noticed that its turn was over.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid

import pyarrow as pa

from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.parquet_writer import TableWriter
from demux.core.errors import ConcurrentChange
from demux.core.storage.files import Storage
from demux.core.storage.lease import Lease
from deserializer.silver.file_table import SilverTable
from tests.support.store.stored import access_at

COLUMNS = Struct((Column("number", Primitive.BIGINT), Column("machine", Primitive.STRING)))
APP_ID = "turns"


def work(url: str, root: str, machine: str, period_s: float, clock_off_s: float, turns: int) -> None:
    """Take this many turns.

    Args:
        url: the server's.
        root: has the lease and the table.
        machine: its name.
        period_s: of the lease.
        clock_off_s: how wrong its clock is.
        turns: how many rows it commits.
    """
    storage, table = Storage(access_at(url)), f"{root}/table"

    def now() -> str:
        return time.ctime(time.time() + clock_off_s)

    def clock() -> float:
        return time.monotonic() + clock_off_s

    lease = Lease(storage, f"{root}/lock", machine, now, period_s, clock)
    done = 0
    while done < turns:
        lease.take(wait=True)
        try:
            lease.check()
            silver = SilverTable.at(storage, table)
            silver.create(COLUMNS, None, "")
            number = (silver.transaction(APP_ID) or 0) + 1
            rows = pa.RecordBatch.from_pydict({"number": [number], "machine": [machine]})
            with TableWriter(storage, table, COLUMNS) as writer:
                writer.add(rows)
                files = writer.close()
            print("ready", flush=True)
            # here a test stops it
            threading.Event().wait(0.05)
            silver.append(files, APP_ID, number)
        except ConcurrentChange:
            print("lost", flush=True)
        else:
            print(number, flush=True)
            done += 1
        finally:
            lease.free()


if __name__ == "__main__":
    url, root, period_s, clock_off_s, turns = sys.argv[1:]
    work(url, root, f"machine {uuid.uuid4().hex[:6]}", float(period_s), float(clock_off_s), int(turns))
