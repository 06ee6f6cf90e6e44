"""OpenTelemetry's SDK by the environment: one tracer and one meter for the process, and their end with it.

Spans and metrics are sent by threads of the SDK: an endpoint that is down or slow delays no round, and the end of the
process by a few seconds at most.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import entry_points, version
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from demux.core.control.freshness import QUANTILES
from demux.pipeline.observers.instruments import (
    GAME,
    GAME_FRESHNESS,
    GAME_LAG,
    GAME_TABLE_AGE,
    INSTRUMENTS,
    QUANTILE,
    ROOT,
    GameSeries,
    Instrument,
    Kind,
)

_SCOPE = "demux"
LAST_SEND_S = 5.0


class Signals:
    """The tracer and the instruments of a process, and what is known of the games of each root."""

    def __init__(self, tracers: trace.TracerProvider, meters: metrics.MeterProvider) -> None:
        """Make the instruments."""
        self.tracer = tracers.get_tracer(_SCOPE, version("protobuf-demux"))
        self._meter = meters.get_meter(_SCOPE, version("protobuf-demux"))
        self._games: dict[str, GameSeries] = {}
        self._made = {each.name: self._instrument(each) for each in INSTRUMENTS}

    def games(self, root: str) -> GameSeries:
        """Return what is known of the root's games."""
        return self._games.setdefault(root, GameSeries())

    def add(self, instrument: Instrument, value: float, attributes: dict[str, str]) -> None:
        """Count or record a value."""
        made = self._made[instrument.name]
        (made.add if instrument.kind is Kind.COUNTER else made.record)(value, attributes)

    def _instrument(self, one: Instrument) -> Any:
        match one.kind:
            case Kind.COUNTER:
                return self._meter.create_counter(one.name, one.unit, one.meaning)
            case Kind.HISTOGRAM:
                return self._meter.create_histogram(one.name, one.unit, one.meaning)
            case Kind.GAUGE:
                look = {GAME_LAG: self._lag, GAME_TABLE_AGE: self._ages, GAME_FRESHNESS: self._freshness}[one]
                return self._meter.create_observable_gauge(one.name, [look], one.unit, one.meaning)

    def _lag(self, _: CallbackOptions) -> Iterable[Observation]:
        for root, games in tuple(self._games.items()):
            yield from (Observation(rows, {ROOT: root, GAME: label}) for label, rows in games.lag_rows().items())

    def _ages(self, _: CallbackOptions) -> Iterable[Observation]:
        now = datetime.now(timezone.utc)
        for root, games in tuple(self._games.items()):
            yield from (Observation(age, {ROOT: root, GAME: label}) for label, age in games.age_s(now).items())

    def _freshness(self, _: CallbackOptions) -> Iterable[Observation]:
        now = datetime.now(timezone.utc)
        for root, games in tuple(self._games.items()):
            for label, fresh in games.freshness(now).items():
                for quantile in QUANTILES:
                    age_s = fresh.quantile_s(quantile)
                    if age_s is not None:
                        yield Observation(age_s, {ROOT: root, GAME: label, QUANTILE: str(quantile)})


@cache
def signals(asked: tuple[tuple[str, tuple[str, ...]], ...]) -> Signals:
    """Return the signals of this process; what an application has set up itself is used as it is.

    Args:
        asked: the entry points of the exporters of each signal, as `signals_asked`.

    Raises:
        ValueError: no installed package has an exporter of that name.
    """
    exporters = dict(asked)
    tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
    ends: list[Callable[[], object]] = []
    if "traces" not in exporters:
        tracers = trace.NoOpTracerProvider()
    elif not isinstance(tracers, TracerProvider):
        tracers = own = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        for made in _made("opentelemetry_traces_exporter", exporters["traces"]):
            own.add_span_processor(BatchSpanProcessor(made))
        ends.append(own.shutdown)
    if "metrics" not in exporters:
        meters = metrics.NoOpMeterProvider()
    elif not isinstance(meters, MeterProvider):
        made = _made("opentelemetry_metrics_exporter", exporters["metrics"])
        readers = [PeriodicExportingMetricReader(each) for each in made]
        meters = own_meters = MeterProvider(readers, _resource(), shutdown_on_exit=False)
        ends.append(own_meters.shutdown)
    _at_exit(ends)
    return Signals(tracers, meters)


def _made(group: str, names: Sequence[str]) -> list[Any]:
    """Return the exporters of these names; each reads its own variables."""
    found = []
    for name in names:
        (*_, point) = (None, *entry_points(group=group, name=name))
        if point is None:
            raise ValueError(f"no installed package has an exporter {name} ({group})")
        found.append(point.load()())
    return found


def _resource() -> Resource:
    named = OTELResourceDetector().detect().attributes
    ours = {SERVICE_NAME: "demux", SERVICE_VERSION: version("protobuf-demux")}
    return Resource.create({name: value for name, value in ours.items() if name not in named})


def _at_exit(ends: Sequence[Callable[[], object]]) -> None:
    """Send what is left when the process ends, side by side, and wait a few seconds for it at most.

    The threads are there before: none can be started at the end of a process.
    """
    ending = threading.Event()

    def wait(end: Callable[[], object]) -> None:
        ending.wait()
        end()

    threads = [threading.Thread(target=wait, args=(end,), daemon=True, name="telemetry") for end in ends]
    for thread in threads:
        thread.start()

    def finish() -> None:
        ending.set()
        for thread in threads:
            thread.join(LAST_SEND_S / len(threads))

    if threads:
        atexit.register(finish)
