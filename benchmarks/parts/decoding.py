"""The decoder alone, one thread, no Spark: the gate's price against bare `ptars`, and the reference's against both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import ptars
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.spark.allocator import keep_freed_memory

_BATCH = 10_000


def rows_per_second(schema: CompiledSchema, payloads: list[bytes], repeats: int) -> dict[str, float]:
    """Return medians for the decoder as it is and for bare `ptars` on the same payloads, in turn."""
    # as in a worker
    keep_freed_memory()
    decoder = decoder_of(schema.descriptor_set, schema.message)
    root = pool_of(FileDescriptorSet.FromString(schema.descriptor_set)).FindMessageTypeByName(schema.message)
    handler = ptars.HandlerPool([root.file]).get_for_message(root)
    batches = [payloads[start : start + _BATCH] for start in range(0, len(payloads), _BATCH)]
    arrays = [pa.array(batch, pa.binary()) for batch in batches]

    def gated() -> None:
        for batch in batches:
            assert not decoder.decode(batch).bad

    def bare() -> None:
        for array in arrays:
            handler.array_to_record_batch(array)

    seconds: dict[str, list[float]] = {"arrow decoder": [], "bare ptars": []}
    for _ in range(repeats):
        seconds["arrow decoder"].append(timed(gated))
        seconds["bare ptars"].append(timed(bare))
    return {name: len(payloads) / statistics.median(times) for name, times in seconds.items()}


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that the work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
