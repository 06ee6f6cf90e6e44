"""The producer's flow: register schemas, send earlier messages again, send new events; or take all of it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import ErasableRegistry, NewSchema, SchemaRegistry
from producer.batch import BatchRecipe, Made, batch
from producer.events import EventWriter
from producer.games import Game, games
from producer.records import EventSink
from producer.report import CleanUpReport, ProduceReport
from producer.request import ProduceRequest, check
from producer.schemas import message_name, proto_path, proto_text

MADE_BY = "producer"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def produce(
    request: ProduceRequest,
    registry: SchemaRegistry,
    sink: EventSink,
    *,
    now: datetime,
    on_progress: Callable[[int], None] = lambda sent: None,
) -> ProduceReport:
    """Return what was sent: earlier messages again, then new events, never the same event twice.

    Registers the schemas, if they are not yet, and appends to the sink. Running it again sends the next events; after
    a crash it continues with the first event that is not in the target (a topic: see `KafkaSink`).

    Args:
        request: what to produce.
        registry: where the schemas go; make it with `made_by=MADE_BY`, so that `clean_up` knows them.
        sink: where the records go.
        now: the time of the first record, with a time zone; events happened in the hour before.
        on_progress: called after each batch with the number of records in it.

    Raises:
        SettingsInvalid: the request has mistakes, or another process made the target.
        SchemaInvalid, RegistryUnavailable, StorageFailed, KafkaUnavailable: and so on, as the registry and the sink do.
    """
    check(request)
    now_us = (now - _EPOCH) // timedelta(microseconds=1)
    first = sink.position().sent
    resent = _send_again(request.resend, sink, now_us, on_progress)
    writers = _writers(request, registry)
    recipe = BatchRecipe(
        request.seed, writers, request.fault_rate, request.faults, request.partitions, first - resent, now_us
    )
    made: Made = Counter()
    for start in range(first, first + request.events, request.batch_events):
        records, counts = batch(recipe, start, min(request.batch_events, first + request.events - start))
        sink.write(records)
        made += counts
        on_progress(len(records.values))
    schema_ids = tuple(writer.schema_id for versions in writers for writer in versions)
    return ProduceReport.of(made, resent, first, schema_ids)


def clean_up(registry: ErasableRegistry, sink: EventSink) -> CleanUpReport:
    """Return what was removed: the target if the producer made it, and the schemas with its mark; nothing else.

    A second call finds nothing and is safe.
    """
    return CleanUpReport(sink.remove(), registry.remove(made_by=MADE_BY))


def _send_again(count: int, sink: EventSink, now_us: int, on_progress: Callable[[int], None]) -> int:
    earlier = sink.newest(count)
    resent = len(earlier.values)
    if resent:
        sink.write(replace(earlier, timestamps_us=now_us + np.arange(resent)))
        on_progress(resent)
    return resent


def _writers(request: ProduceRequest, registry: SchemaRegistry) -> Sequence[Sequence[EventWriter]]:
    playing = games(request.games, request.hostile)
    versions = range(1, request.versions + 1)
    pairs = [(game, version) for game in playing for version in versions]
    ids = registry.register_all([_new_schema(game, version) for game, version in pairs])
    writers = [
        _writer(game, version, schema_id, registry) for (game, version), schema_id in zip(pairs, ids, strict=True)
    ]
    return [writers[at : at + request.versions] for at in range(0, len(writers), request.versions)]


def _new_schema(game: Game, version: int) -> NewSchema:
    return NewSchema(game.name, proto_text(game, version), proto_path(game), (), message_name(game))


def _writer(game: Game, version: int, schema_id: int, registry: SchemaRegistry) -> EventWriter:
    compiled = compile_schema(registry.schema(schema_id))
    pool = pool_of(FileDescriptorSet.FromString(compiled.descriptor_set))
    return EventWriter(game, version, schema_id, message_class(pool, compiled.message))
