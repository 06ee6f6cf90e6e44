"""A command's progress as OpenLineage's run events; docs/observability.md has the jobs and facets.

A run of the command is the parent of the runs below it: one of bronze, and one of each game whose rows were decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    schema_dataset,
)
from openlineage.client.uuid import generate_new_uuid

from demux.core.error_mapping import as_demux_error
from demux.core.names import names_of
from demux.core.reports import GameReport, IngestReport
from demux.core.root.layout import Layout
from demux.core.settings.settings import Settings
from demux.pipeline.observers.datasets import DatasetField, DatasetName, dataset_at, sources
from demux.pipeline.observers.observer import CommandRun, Observer, RoundStage, end_of
from demux.pipeline.task_pool import TaskEnd

# a package URL (https://github.com/package-url/purl-spec)
PRODUCER = f"pkg:pypi/protobuf-demux@{version('protobuf-demux')}"

# makes an event when it is sent: a table's columns are looked up then
Send = Callable[[Callable[[], RunEvent]], None]
# the columns of the table at a path; what is remembered of them is for these schema ids
Columns = Callable[[str, tuple[int, ...]], Sequence[DatasetField]]


@dataclass(frozen=True, slots=True)
class _JobRun:
    """One run of a job."""

    job: str
    run_id: str
    began: datetime


class Lineage(Observer):
    """One run of a command: its own events, those of bronze, and those of games that had new rows or failed."""

    def __init__(
        self, settings: Settings, layout: Layout, environ: Mapping[str, str], send: Send, columns: Columns
    ) -> None:
        """Prepare for one run.

        Args:
            environ: `OPENLINEAGE_NAMESPACE` is that of the jobs; without it, it is the root's URI.
            send: takes events in order.
        """
        self._settings = settings
        self._layout = layout
        self._namespace = environ.get("OPENLINEAGE_NAMESPACE") or _uri(settings.root)
        self._send = send
        self._columns = columns
        self._command: _JobRun | None = None
        self._bronze: _JobRun | None = None
        self._ingested = IngestReport(0, 0, 0)
        self._decoding: datetime | None = None

    def began(self, run: CommandRun) -> None:
        """Say that the command's run begins."""
        self._command = self._start(run.command, run.began)

    def stage_began(self, stage: RoundStage, at: datetime) -> None:
        """Say that a run of bronze begins."""
        if stage is RoundStage.INGEST:
            self._bronze = self._start("bronze", at)
        if stage is RoundStage.DECODE:
            self._decoding = at

    def ingested(self, report: IngestReport) -> None:
        """Remember what bronze took in."""
        self._ingested = report

    def stage_ended(self, stage: RoundStage, at: datetime, error: BaseException | None) -> None:
        """Say that a run of bronze ends."""
        if stage is RoundStage.INGEST and self._bronze is not None:
            rows = {self._layout.bronze: self._ingested.rows_bronze}
            rows |= {self._layout.quarantine: self._ingested.rows_quarantined}
            written = {path: count for path, count in rows.items() if count}
            self._end(self._bronze, at, error, tuple(sources(self._settings)), written)

    def ended(self, end: TaskEnd[GameReport]) -> None:
        """Say that a game's run began and ended; a game without new rows has none."""
        if end.report is not None and not end.report.rows_in:
            return
        key, at = names_of(end.task.game).key, end_of(end)
        run = self._start(f"silver.{key}", min(self._decoding or at, at))
        rows = {self._layout.silver(key): 0 if end.report is None else end.report.rows_silver}
        if end.report is not None and end.report.rows_quarantined:
            rows[self._layout.quarantine] = end.report.rows_quarantined
        ids = () if end.report is None else end.report.schema_ids
        self._end(run, at, end.error, (dataset_at(self._layout.bronze),), rows, ids)

    def closed(self, at: datetime, error: BaseException | None) -> None:
        """Say that the command's run ends."""
        if self._command is not None:
            self._end(self._command, at, error, (), {})

    def _start(self, job: str, at: datetime) -> _JobRun:
        run = _JobRun(f"demux.{job}", str(generate_new_uuid(at)), at)
        self._send(lambda: self._event(RunState.START, run, at, None))
        return run

    def _end(
        self,
        run: _JobRun,
        at: datetime,
        error: BaseException | None,
        read: Iterable[DatasetName],
        rows: Mapping[str, int],
        schema_ids: tuple[int, ...] = (),
    ) -> None:
        """Send the event of a run's end; `rows` says how many were written, by path of the table."""
        state = RunState.COMPLETE if error is None else RunState.FAIL
        inputs = [InputDataset(each.namespace, each.name) for each in read]

        def made() -> RunEvent:
            event = self._event(state, run, at, error)
            event.inputs = inputs
            event.outputs = [self._output(path, count, schema_ids) for path, count in rows.items()]
            return event

        self._send(made)

    def _event(self, state: RunState, run: _JobRun, at: datetime, error: BaseException | None) -> RunEvent:
        command = self._command
        kind = "JOB" if command is None or run == command else "TASK"
        facets: dict[str, RunFacet] = {}
        if command is not None and run != command:
            parent = parent_run.Job(self._namespace, command.job)
            facets["parent"] = parent_run.ParentRunFacet(parent_run.Run(command.run_id), parent, producer=PRODUCER)
        if error is not None:
            failure = as_demux_error(error)
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                f"{failure.condition} {failure.message} {failure.remedy}", "python", producer=PRODUCER
            )
        job_type = job_type_job.JobTypeJobFacet("BATCH", "DEMUX", kind, producer=PRODUCER)
        return RunEvent(
            eventType=state,
            eventTime=at.isoformat(),
            run=Run(run.run_id, facets),
            job=Job(self._namespace, run.job, {"jobType": job_type}),
            producer=PRODUCER,
        )

    def _output(self, path: str, rows: int, schema_ids: tuple[int, ...]) -> OutputDataset:
        dataset = dataset_at(path)
        fields = [_facet_field(each) for each in self._columns(path, schema_ids)]
        counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows, producer=PRODUCER)
        found = OutputDataset(dataset.namespace, dataset.name, outputFacets={"outputStatistics": counted})
        if fields:
            found.facets = {"schema": schema_dataset.SchemaDatasetFacet(fields, producer=PRODUCER)}
        return found


def _facet_field(field: DatasetField) -> schema_dataset.SchemaDatasetFacetFields:
    parts = [_facet_field(each) for each in field.fields]
    return schema_dataset.SchemaDatasetFacetFields(field.name, field.type, field.description, fields=parts)


def _uri(root: str) -> str:
    return root if "://" in root else Path(root).as_uri()
