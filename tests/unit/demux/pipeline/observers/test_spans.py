"""A round as spans and metrics, by OpenTelemetry's own SDK."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from demux.core.errors import KafkaUnavailable
from demux.core.settings.settings import Engine
from demux.pipeline.observers.instruments import MOST_GAMES, OTHER
from demux.pipeline.observers.observer import Observer, Observers, RoundStage
from demux.pipeline.observers.signals import Signals
from demux.pipeline.observers.spans import MOST_GAME_SPANS, Telemetry
from tests.support.observed import BEGAN, done, failed, observe_round, plan_of, seconds

ROOT = "s3://lake/demux"


class Sent:
    """Spans and metrics that stay in memory."""

    def __init__(self) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._signals = Signals(tracers, MeterProvider([self._reader], shutdown_on_exit=False))

    def telemetry(self) -> Telemetry:
        """What observes the next run."""
        return Telemetry(self._signals, ROOT, Engine.FLEET)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans, in order of their ends."""
        return list(self._exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The only span of the name."""
        (found,) = (span for span in self.spans if span.name == name)
        return found

    def metrics(self) -> dict[str, list[tuple[Mapping[str, Any], float]]]:
        """Attributes, without the root, and values of each metric; the sum of a histogram."""
        data = self._reader.get_metrics_data()
        assert data is not None
        found: dict[str, list[tuple[Mapping[str, Any], float]]] = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.data.data_points:
                attributes = dict(point.attributes or {})
                assert attributes.pop("demux.root") == ROOT
                value = point.sum if hasattr(point, "sum") else point.value
                found.setdefault(metric.name, []).append((attributes, value))
        return found


def seconds_of(span: ReadableSpan) -> list[float]:
    """From when to when a span was, in seconds from the beginning of the round."""
    return [round((ns or 0) / 1e9 - BEGAN.timestamp(), 3) for ns in (span.start_time, span.end_time)]


@pytest.fixture
def sent() -> Sent:
    return Sent()


def test_a_round_is_a_span_with_its_stages_batches_games_and_commits_below_it(sent: Sent) -> None:
    observe_round([sent.telemetry()], [done("chess"), failed("go")], idle=["ludo"])
    names = {span.context.span_id: span.name for span in sent.spans}
    parents = sorted((names[span.parent.span_id] if span.parent else "", span.name) for span in sent.spans)
    assert parents == [
        ("", "demux.round"),
        *(("demux.round", f"demux.stage.{stage}") for stage in ("close", "decode", "ingest", "plan")),
        *[("demux.stage.decode", "demux.game")] * 2,
        ("demux.stage.decode", "demux.stage.commit"),
        *[("demux.stage.ingest", "demux.batch")] * 2,
    ]
    assert len({span.context.trace_id for span in sent.spans}) == 1
    assert seconds_of(sent.span("demux.round")) == [0, 11]
    assert seconds_of(sent.span("demux.stage.decode")) == [7, 8]
    assert seconds_of(sent.span("demux.stage.commit")) == [7.5, 7.75]
    assert [seconds_of(span) for span in sent.spans if span.name == "demux.batch"] == [[1, 2], [2, 3]]
    assert dict(sent.span("demux.round").attributes or {}) == {
        "demux.root": ROOT,
        "demux.run.id": "r1",
        "demux.engine": "fleet",
    }
    assert dict(sent.span("demux.stage.plan").attributes or {}) == {
        "demux.games.due": 2,
        "demux.games.planned": 3,
        "demux.games.waiting": 0,
        "demux.plan.changes": 3,
    }


def test_the_span_of_a_game_says_what_became_of_its_rows_or_why_it_failed(sent: Sent) -> None:
    observe_round([sent.telemetry()], [done("chess", rows=10, bad=1, waiting=4), failed("go")])
    chess, go = (span for span in sent.spans if span.name == "demux.game")
    assert seconds_of(chess) == [7, 7.75]
    assert dict(chess.attributes or {}) == {
        "demux.game": "chess",
        "demux.cluster": "cluster_001",
        "demux.work_s": 0.75,
        "demux.rows.in": 10,
        "demux.rows.silver": 9,
        "demux.rows.quarantine": 1,
        "demux.rows.waiting": 4,
        "demux.schema.ids": (101,),
    }
    assert (go.attributes or {})["error.type"] == "SCHEMA_INVALID"
    assert (go.status.status_code.name, go.status.description) == ("ERROR", "Schema 7 is wrong.")


def test_metrics_count_rows_bytes_and_failures_by_game(sent: Sent) -> None:
    for _ in range(2):
        observe_round([sent.telemetry()], [done("chess", rows=10, bad=1, waiting=4), failed("go")], idle=["ludo"])
    found = sent.metrics()
    assert found["demux.ingest.rows"] == [({"demux.outcome": "bronze"}, 38), ({"demux.outcome": "quarantine"}, 2)]
    assert found["demux.game.rows"] == [
        ({"demux.game": "chess", "demux.outcome": "silver"}, 18),
        ({"demux.game": "chess", "demux.outcome": "quarantine"}, 2),
    ]
    assert found["demux.game.bytes"] == [({"demux.game": "chess"}, 2000)]
    assert found["demux.game.failures"] == [({"demux.game": "go", "error.type": "SCHEMA_INVALID"}, 2)]
    assert found["demux.tasks"] == [({"demux.outcome": "behind"}, 2), ({"demux.outcome": "failed"}, 2)]
    assert found["demux.game.lag"] == [({"demux.game": "chess"}, 4)]
    stages = {attributes["demux.stage"]: value for attributes, value in found["demux.stage.duration"]}
    assert stages == {"ingest": 6, "plan": 2, "decode": 2, "commit": 0.5, "close": 2}
    assert found["demux.command.duration"] == [({"demux.command": "round", "demux.outcome": "failed"}, 22)]


def test_a_game_is_as_fresh_as_the_bronze_that_it_has_whole(sent: Sent) -> None:
    observe_round([sent.telemetry()], [done("chess"), done("skat", waiting=1), failed("go")], idle=["ludo"])
    now = datetime.now(timezone.utc)
    ages = {attributes["demux.game"]: value for attributes, value in sent.metrics()["demux.game.table.age"]}
    # a game with rows that wait, and one that failed, have no state of bronze whole
    assert ages.keys() == {"chess", "ludo"}
    decoding = BEGAN + timedelta(seconds=7)
    assert ages["chess"] == pytest.approx((now - decoding).total_seconds(), abs=60)


def test_of_a_round_that_was_stopped_no_idle_game_is_called_fresh(sent: Sent) -> None:
    clock = seconds()
    observers = Observers(Observer(), [sent.telemetry()], lambda: next(clock))
    with observers.run("round", "r1"):
        with observers.stage(RoundStage.PLAN):
            observers.planned(plan_of("chess", "ludo", "go"), 2)
        with observers.stage(RoundStage.DECODE):
            list(observers.each([done("chess")]))
    assert [attributes for attributes, _ in sent.metrics()["demux.game.table.age"]] == [{"demux.game": "chess"}]


def test_a_round_that_fails_says_why_on_its_stage_and_on_itself(sent: Sent) -> None:
    clock = seconds()
    observers = Observers(Observer(), [sent.telemetry()], lambda: next(clock))
    with pytest.raises(KafkaUnavailable), observers.run("round", "r1"), observers.stage(RoundStage.INGEST):
        raise KafkaUnavailable("No broker answers.", "Start one.")
    for name in ("demux.stage.ingest", "demux.round"):
        span = sent.span(name)
        assert (span.attributes or {})["error.type"] == "KAFKA_UNAVAILABLE"
        assert (span.status.status_code.name, span.status.description) == ("ERROR", "No broker answers.")
    assert sent.metrics()["demux.command.duration"][0][0]["demux.outcome"] == "failed"


def test_ten_thousand_games_make_a_bounded_number_of_spans_and_series(sent: Sent) -> None:
    ends = [done(f"game {number}") if number % 2 else failed(f"game {number}") for number in range(10_000)]
    observe_round([sent.telemetry()], ends)
    assert sum(span.name == "demux.game" for span in sent.spans) == 2 * MOST_GAME_SPANS
    found = sent.metrics()
    assert len({attributes["demux.game"] for attributes, _ in found["demux.game.rows"]}) <= MOST_GAMES + 1
    other = [value for attributes, value in found["demux.game.bytes"] if attributes == {"demux.game": OTHER}]
    assert sum(value for _, value in found["demux.game.bytes"]) == 5_000 * 1000
    assert len(other) == 1
