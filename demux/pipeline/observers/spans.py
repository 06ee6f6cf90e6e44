"""A command's progress as OpenTelemetry's spans and metrics; docs/observability.md has their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from demux.core.error_mapping import as_demux_error
from demux.core.reports import GameReport, IngestReport, Period
from demux.core.settings.settings import Engine
from demux.pipeline.observers import instruments as of
from demux.pipeline.observers.observer import CommandRun, Observer, RoundStage, end_of
from demux.pipeline.observers.signals import Signals
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan

# of those that ended well, and of those that failed, in one run; the metrics have all
MOST_GAME_SPANS = 200

_Value = str | bool | int | float


class Telemetry(Observer):
    """One run of a command: a span for it, for its stages, batches and games; and the metrics of the process."""

    def __init__(self, signals: Signals, root: str, engine: Engine) -> None:
        """Prepare for one run."""
        self._signals = signals
        self._games = signals.games(root)
        self._root = root
        self._engine = engine
        self._spans: list[Span] = []
        self._began: list[datetime] = []
        self._batch_began: datetime | None = None
        self._bronze_at: datetime | None = None
        self._games_ended: Counter[str] = Counter()
        self._commits: list[Period] = []
        self._idle: set[str] = set()
        self._due = 0
        self._command = ""

    def began(self, run: CommandRun) -> None:
        """Begin the span of the run."""
        self._command = run.command
        self._bronze_at = run.began
        self._begin(f"demux.{run.command}", run.began)
        self._set({of.ROOT: self._root, "demux.run.id": run.run_id, "demux.engine": self._engine.value})

    def stage_began(self, stage: RoundStage, at: datetime) -> None:
        """Begin the span of the stage."""
        if stage is RoundStage.PLAN:
            # of what bronze takes in from now on, a round may decode nothing
            self._bronze_at = at
        self._batch_began = at
        self._begin(f"demux.stage.{stage.value}", at)

    def batch(self, report: IngestReport, at: datetime) -> None:
        """Make a span for the micro-batch, which began when the one before it had ended, and count its rows."""
        span = self._child("demux.batch", self._batch_began or at)
        span.set_attributes(_ingested(report))
        span.end(_ns(at))
        self._batch_began = at
        self._count(of.INGESTED_ROWS, report.rows_bronze, {of.OUTCOME: "bronze"})
        self._count(of.INGESTED_ROWS, report.rows_quarantined, {of.OUTCOME: "quarantine"})

    def ingested(self, report: IngestReport) -> None:
        """Say what bronze took in."""
        self._set(_ingested(report))

    def planned(self, plan: Plan, due: int) -> None:
        """Say how many games are in the plan."""
        self._idle, self._due = {task.game for task in plan.tasks}, due
        self._set({"demux.games.due": due, "demux.games.planned": len(plan.tasks)})
        self._set({"demux.games.waiting": len(plan.waiting), "demux.plan.changes": len(plan.changes)})

    def ended(self, end: TaskEnd[GameReport]) -> None:
        """Count what the game did, and make a span for it."""
        outcome = "failed" if end.report is None else "behind" if end.report.rows_waiting else "done"
        self._games_ended[outcome] += 1
        self._idle.discard(end.task.game)
        if end.commit is not None:
            self._commits.append(end.commit)
        self._count(of.TASKS, 1, {of.OUTCOME: outcome})
        label = {of.GAME: self._games.label(end.task.game)}
        if end.report is None:
            condition = end.error.condition if end.error else ""
            self._count(of.GAME_FAILURES, 1, {**label, of.ERROR: condition})
        else:
            self._did(end.report, label)
            self._games.committed(end.task.game, end.report.freshness, end_of(end))
        if end.report is None or end.report.rows_in:
            self._signals.add(of.GAME_DURATION, end.seconds, self._with_root({of.OUTCOME: outcome}))
            if self._games_ended[outcome] <= MOST_GAME_SPANS:
                self._game_span(end)

    def stage_ended(self, stage: RoundStage, at: datetime, error: BaseException | None) -> None:
        """End the span of the stage."""
        if stage is RoundStage.DECODE:
            self._commit_span()
            self._set({f"demux.games.{outcome}": number for outcome, number in self._games_ended.items()})
        self._end(at, error, of.STAGE_DURATION, {of.STAGE: stage.value})

    def closed(self, at: datetime, error: BaseException | None) -> None:
        """End the span of the run."""
        if error is None and self._bronze_at is not None and self._games_ended.total() == self._due:
            # every game was looked at, and these have nothing new
            self._games.fresh(self._idle, self._bronze_at)
        failed = error is not None or self._games_ended["failed"] > 0
        outcome = {of.COMMAND: self._command, of.OUTCOME: "failed" if failed else "done"}
        self._end(at, error, of.COMMAND_DURATION, outcome)

    def _did(self, report: GameReport, label: Mapping[str, str]) -> None:
        self._count(of.GAME_ROWS, report.rows_silver, {**label, of.OUTCOME: "silver"})
        self._count(of.GAME_ROWS, report.rows_quarantined, {**label, of.OUTCOME: "quarantine"})
        self._count(of.GAME_BYTES, report.bytes_in, label)
        self._games.left(report.game, report.rows_waiting)
        if not report.rows_waiting and self._bronze_at is not None:
            self._games.fresh([report.game], self._bronze_at)

    def _game_span(self, end: TaskEnd[GameReport]) -> None:
        ended_s = end_of(end).timestamp()
        began_s = max(self._began[-1].timestamp(), ended_s - end.seconds)
        span = self._child("demux.game", datetime.fromtimestamp(began_s, timezone.utc))
        span.set_attributes({of.GAME: end.task.game, "demux.cluster": end.task.cluster, "demux.work_s": end.seconds})
        if end.report is not None:
            span.set_attributes(
                {
                    "demux.rows.in": end.report.rows_in,
                    "demux.rows.silver": end.report.rows_silver,
                    "demux.rows.quarantine": end.report.rows_quarantined,
                    "demux.rows.waiting": end.report.rows_waiting,
                    "demux.schema.ids": end.report.schema_ids,
                }
            )
        if end.error is not None:
            _fail(span, end.error)
        span.end(int(ended_s * 1e9))

    def _commit_span(self) -> None:
        """Make a span from the first game's commit to the last one's."""
        if not self._commits:
            return
        began_s, ended_s = min(one.began_s for one in self._commits), max(one.ended_s for one in self._commits)
        span = self._child("demux.stage.commit", datetime.fromtimestamp(began_s, timezone.utc))
        span.set_attribute("demux.commits", len(self._commits))
        span.end(int(ended_s * 1e9))
        attributes = self._with_root({of.STAGE: "commit"})
        self._signals.add(of.STAGE_DURATION, max(0.0, ended_s - began_s), attributes)

    def _begin(self, name: str, at: datetime) -> None:
        self._spans.append(self._child(name, at))
        self._began.append(at)

    def _child(self, name: str, at: datetime) -> Span:
        context = trace.set_span_in_context(self._spans[-1]) if self._spans else None
        return self._signals.tracer.start_span(name, context, start_time=_ns(at))

    def _set(self, attributes: Mapping[str, _Value]) -> None:
        self._spans[-1].set_attributes(attributes)

    def _end(
        self, at: datetime, error: BaseException | None, instrument: of.Instrument, attributes: Mapping[str, str]
    ) -> None:
        span, began = self._spans.pop(), self._began.pop()
        if error is not None:
            _fail(span, error)
        span.end(_ns(at))
        self._signals.add(instrument, max(0.0, (at - began).total_seconds()), self._with_root(attributes))

    def _count(self, instrument: of.Instrument, value: int, attributes: Mapping[str, str]) -> None:
        if value:
            self._signals.add(instrument, value, self._with_root(attributes))

    def _with_root(self, attributes: Mapping[str, str]) -> dict[str, str]:
        return {of.ROOT: self._root, **attributes}


def _ingested(report: IngestReport) -> dict[str, _Value]:
    return {
        "demux.rows.in": report.rows_in,
        "demux.rows.bronze": report.rows_bronze,
        "demux.rows.quarantine": report.rows_quarantined,
    }


def _fail(span: Span, error: BaseException) -> None:
    failure = as_demux_error(error)
    span.set_attribute(of.ERROR, failure.condition)
    span.set_status(Status(StatusCode.ERROR, failure.message))


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1e9)
