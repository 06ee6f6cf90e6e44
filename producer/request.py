"""What the producer is asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from demux.core.errors import SettingsInvalid
from producer.faults import Fault
from producer.games import HOSTILE


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """What to produce.

    Attributes:
        events: how many new events.
        games: how many games with plain names.
        hostile: how many games more, with names that try to do harm (at most 10).
        versions: how many schema versions each game has, all of them in use.
        fault_rate: the share of events with a fault, 0 to 1.
        faults: the kinds of fault, equally often.
        seed: the random seed; the same seed continues after the target's last event.
        resend: how many of the target's newest messages are sent again first.
        partitions: how many partitions the topic has.
        batch_events: how many events are sent at a time.
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
