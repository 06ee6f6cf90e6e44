"""The producer's flow: register schemas, send earlier messages again, send new events; or take all of it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

import numpy as np
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.causes import Cause
from demux.core.errors import SettingsInvalid
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import ErasableRegistry, NewSchema, SchemaRegistry
from producer.batch import BatchRecipe, Made, batch
from producer.events import EventWriter
from producer.faults import Fault, cause_of
from producer.records import EventSink
from producer.schemas import HOSTILE, Game, games, message_name, proto_path, proto_text

_NO_GAME = (Cause.MALFORMED_WRAPPER, Cause.INVALID_GAME_NAME)


@dataclass(frozen=True, slots=True)
class ProducedGame:
    """The new events of one game that get as far as bronze.

    Attributes:
        bronze: how many rows of it come to bronze.
        quarantine: how many of those are not, by cause.
    """

    game: str
    bronze: int
    silver: int
    quarantine: Mapping[Cause, int]


@dataclass(frozen=True, slots=True)
class ProduceReport:
    """The counts of what was sent.

    Attributes:
        events: new events, faulty ones included.
        resent: earlier messages sent again; in none of the other counts.
        quarantine: how many new events must end in quarantine, by cause, over all games.
        games: what becomes of the new events of each game, in order of name.
    """

    events: int
    resent: int
    first: int
    faults: Mapping[Fault, int]
    quarantine: Mapping[Cause, int]
    games: tuple[ProducedGame, ...]
    schema_ids: tuple[int, ...]

    @staticmethod
    def of(made: Made, resent: int, first: int, schema_ids: tuple[int, ...]) -> ProduceReport:
        """Return the report of these events, counted by game and fault."""
        faults: Counter[Fault] = Counter()
        quarantine: Counter[Cause] = Counter()
        for (_, fault), count in made.items():
            if fault is not None:
                faults[fault] += count
                if cause := cause_of(fault):
                    quarantine[cause] += count
        names = sorted({game for game, _ in made})
        games = tuple(_game_report(name, made) for name in names)
        return ProduceReport(made.total(), resent, first, faults, quarantine, games, schema_ids)


@dataclass(frozen=True, slots=True)
class CleanUpReport:
    """The result of `clean_up`."""

    target: bool
    schema_ids: tuple[int, ...]


def _game_report(name: str, made: Made) -> ProducedGame:
    silver, quarantine = 0, Counter[Cause]()
    for (game, fault), count in made.items():
        cause = cause_of(fault) if fault is not None else None
        if game != name or cause in _NO_GAME:
            continue
        if cause is None:
            silver += count
        else:
            quarantine[cause] += count
    return ProducedGame(name, silver + quarantine.total(), silver, quarantine)


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
    """Send earlier messages again, then new events, never the same event twice; return the counts.

    Registers the schemas, if they are not yet, and appends to the sink. Running it again sends the next events; after
    a crash it continues with the first event that is not in the target (a topic: see `KafkaSink`).

    Args:
        registry: where the schemas go; make it with `made_by=MADE_BY`, so that `clean_up` knows them.
        now: the time of the first record, with a time zone; events happened in the hour before.

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
    """Remove the target if the producer made it, and the schemas with its mark; nothing else.

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


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """The options of `produce`.

    Attributes:
        hostile: how many games more, with names that try to do harm (at most 10).
        versions: how many schema versions each game has, all of them in use.
        fault_rate: the share of events with a fault, 0 to 1.
        faults: the kinds of fault, equally often.
        seed: the random seed; the same seed continues after the target's last event.
        resend: how many of the target's newest messages are sent again first.
    """

    events: int = 20_000
    games: int = 20
    hostile: int = 0
    versions: int = 3
    fault_rate: float = 0.01
    faults: tuple[Fault, ...] = tuple(Fault)
    seed: int = 1
    resend: int = 0
    partitions: int = 4
    batch_events: int = 50_000


def check(request: ProduceRequest) -> None:
    """Return nothing when the request can be done.

    Raises:
        SettingsInvalid: it cannot; the sentence has all mistakes.
    """
    if mistakes := list(_mistakes(request)):
        raise SettingsInvalid(
            f"The events cannot be produced: {'; '.join(mistakes)}.", "Correct the options.", mistakes=mistakes
        )


def _mistakes(request: ProduceRequest) -> Iterator[str]:
    at_least = {"events": 0, "games": 0, "versions": 1, "seed": 0, "resend": 0, "partitions": 1, "batch_events": 1}
    for name, least in at_least.items():
        if getattr(request, name) < least:
            yield f"{name} is {getattr(request, name)}, and must be at least {least}"
    if not 0 <= request.hostile <= len(HOSTILE):
        yield f"hostile is {request.hostile}, and must be from 0 to {len(HOSTILE)}"
    if not 0 <= request.fault_rate <= 1:
        yield f"fault_rate is {request.fault_rate}, and must be from 0 to 1"
    if request.games <= 0 and request.hostile <= 0:
        yield "there are no games"
