"""`demux.decode` and `demux.encode` in a worker, one thread, without Spark itself: against `ptars` and the producer.

`python -m benchmarks.parts.payload_columns` measures it alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import ptars
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message

from benchmarks.parts.decoding import timed
from benchmarks.support.page import write_section
from demux.core.protobuf.encode.message_column import MessageColumn, to_payloads
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.protobuf.wire.framing import frame_bytes
from demux.core.registry.protocol import RegisteredSchema
from demux.core.settings.source import WrapperFraming
from demux.core.spark.allocator import keep_freed_memory
from demux.core.spark.map_in_arrow import Batches
from deserializer.decoders.payload_column import PayloadColumn, decide_column, to_messages
from producer.events import EventWriter, payloads, random_words
from producer.schemas import games, message_name, proto_path, proto_text

TITLE = "Payloads in a column of any frame"
BARE, DECODE, FRAMED = "bare `ptars`, payloads without frame", "`decode`, one schema", "`decode`, frames of 3 versions"
PRODUCER, ENCODE = "the producer's encoder: values drawn, then `google.protobuf`", "`encode`"
_BATCH = 10_000
_NOW_US = 1_750_000_000_000_000


def measured(rows: int = 200_000, repeats: int = 5) -> dict[str, float]:
    """Return rows per second of each, medians; all in turn on the events of one game."""
    # as in a worker
    keep_freed_memory()
    schemas = {version: _schema(version) for version in (1, 2, 3)}
    made = {version: _payloads(schemas[version], version, rows) for version in schemas}
    bare, framed = made[3], [frame_bytes(at % 3 + 1, (0,)) + made[at % 3 + 1][at] for at in range(rows)]
    newest = schemas[3]
    one = PayloadColumn(0, WrapperFraming.BARE, decide_column({3: newest}), shared_id=3)
    several = PayloadColumn(0, WrapperFraming.CONFLUENT, decide_column(dict(schemas)))
    decoded = list(to_messages(one, "message", "bad", None)(_batches(bare)))
    target = MessageColumn((0,), True, newest.descriptor_set, newest.message, b"")
    descriptor = _class(newest).DESCRIPTOR
    handler = ptars.HandlerPool([descriptor.file]).get_for_message(descriptor)
    arrays = [batch.column(0) for batch in _batches(bare)]
    work: dict[str, Callable[[], object]] = {
        BARE: lambda: [handler.array_to_record_batch(array) for array in arrays],
        DECODE: lambda: _drained(to_messages(one, "message", "bad", None)(_batches(bare))),
        FRAMED: lambda: _drained(to_messages(several, "message", "bad", None)(_batches(framed))),
        PRODUCER: lambda: _payloads(newest, 3, rows),
        ENCODE: lambda: _drained(to_payloads(target, "value", "bad")(iter(decoded))),
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, run in work.items():
            seconds[name].append(timed(run))
    return {name: rows / statistics.median(each) for name, each in seconds.items()}


def lines(speeds: dict[str, float]) -> list[str]:
    """Return the speeds as Markdown."""
    return [
        "| one thread, in a worker | rows per second | ratio |",
        "| --- | ---: | ---: |",
        *(f"| {name} | {speeds[name]:,.0f} | {speeds[name] / speeds[BARE]:.2f} |" for name in (BARE, DECODE, FRAMED)),
        *(f"| {name} | {speeds[name]:,.0f} | {speeds[name] / speeds[PRODUCER]:.2f} |" for name in (PRODUCER, ENCODE)),
        "",
        "Ratios of `decode` to bare `ptars`, which checks no payload; of `encode` to the producer. Besides, Spark "
        "hands rows to its workers and takes them back, which is the same for every function of `mapInArrow`.",
    ]


def write() -> None:
    """Measure, and write the section of RESULTS.md."""
    write_section(
        TITLE, "python -m benchmarks.parts.payload_columns", "200,000 events, medians of 5", lines(measured())
    )


def _schema(version: int) -> CompiledSchema:
    (game,) = games(1)
    text, path, message = proto_text(game, version), proto_path(game), message_name(game)
    return compile_schema(RegisteredSchema(version, game.name, version, text, path, (), message))


def _class(schema: CompiledSchema) -> type[Message]:
    return message_class(pool_of(FileDescriptorSet.FromString(schema.descriptor_set)), schema.message)


def _payloads(schema: CompiledSchema, version: int, rows: int) -> list[bytes]:
    (game,) = games(1)
    return payloads(EventWriter(game, version, version, _class(schema)), random_words(1, 0, rows), _NOW_US)


def _batches(values: list[bytes]) -> Batches:
    for start in range(0, len(values), _BATCH):
        yield pa.RecordBatch.from_pydict({"value": pa.array(values[start : start + _BATCH], pa.binary())})


def _drained(batches: Batches) -> None:
    for batch in batches:
        assert batch.column(batch.num_columns - 1).null_count == len(batch)


if __name__ == "__main__":
    write()
