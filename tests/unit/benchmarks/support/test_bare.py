from __future__ import annotations

from multiprocessing.pool import ThreadPool
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from benchmarks.support.bare import BareLoop
from demux.core.names import names_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from tools.memory_registry import MemoryRegistry

TEXT = 'syntax = "proto3"; message Event { string name = 1; uint32 score = 2; uint64 total = 3; }'


def test_the_bare_loop_reads_what_is_new_and_keeps_unsigned_numbers(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    schema = compile_schema(registry.schema(registry.register("ch ess", TEXT, "event.proto", ())))
    event = message_class(pool_of(FileDescriptorSet.FromString(schema.descriptor_set)), schema.message)
    payload = event(name="ann", score=2**32 - 1, total=2**64 - 1).SerializeToString()
    rows = pa.table({"game_name": ["ch ess"] * 2, "payload": pa.array([payload, b""], pa.binary())})
    bronze = str(tmp_path / "bronze")
    with ThreadPool(1) as pool:
        loop = BareLoop(bronze, tmp_path / "bare", {"ch ess": schema}, pool)
        for expected in (2, 4, 4):
            if loop.rows < 4:
                write_deltalake(bronze, rows, mode="append", partition_by=["game_name"])
            loop.take()
            assert loop.rows == expected
    found = DeltaTable(tmp_path / "bare" / names_of("ch ess").key).to_pyarrow_table().to_pylist()
    assert (
        found
        == [
            {"name": "ann", "score": 2**32 - 1, "total": 2**64 - 1},
            {"name": "", "score": 0, "total": 0},
        ]
        * 2
    )
