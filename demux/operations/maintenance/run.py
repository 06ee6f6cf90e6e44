"""Maintenance of a root: retires old rows, then compacts and vacuums table by table.

Between two tables others may have the root, so streams run meanwhile. One table's failure stops no other. Killed
anywhere and called again, it does what is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Event, Lock

from pyspark.sql import SparkSession

from demux.core.delta.scan import only_spark_reads
from demux.core.error_mapping import as_demux_error
from demux.core.extras import deltalake
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.settings.maintenance import MaintainSettings
from demux.core.storage.files import Storage
from demux.operations.maintenance import file_table as by_files
from demux.operations.maintenance import retention
from demux.operations.maintenance import spark_table as by_spark
from demux.operations.maintenance.compaction_plan import LastSort
from demux.operations.maintenance.game_offsets import read_unread
from demux.operations.maintenance.report import HeldBack, Table, TableKind, TableMaintenance, Vacuum
from demux.operations.maintenance.retention import remove_old_rounds
from demux.operations.maintenance.state import MaintenanceState, SparkTableState, read_state, write_state
from demux.operations.maintenance.unread_files import UnreadBronze
from demux.operations.reconcile.offsets import OffsetsReader


@dataclass(frozen=True, slots=True)
class MaintenanceRequest:
    """The options of one run of maintenance."""

    settings: MaintainSettings
    vacuum: Vacuum
    dry_run: bool
    now: datetime
    new_id: str
    threads: int
    whole: bool = True


@dataclass(slots=True)
class TableMaintainer:
    """Maintains the tables of a root.

    Attributes:
        spark: the session; None: only to look, at tables that are read without it.
        give_way: called between two steps: others may have the root then.
    """

    spark: SparkSession | None
    layout: Layout
    request: MaintenanceRequest
    offsets_of: OffsetsReader
    give_way: Callable[[], None]
    stop: Event
    held_back: list[HeldBack] = field(default_factory=list)
    retired: dict[str, int] = field(default_factory=dict)
    _state: MaintenanceState = field(default_factory=MaintenanceState)
    _for_spark: set[str] = field(default_factory=set)
    _one_writes: Lock = field(default_factory=Lock)

    def run(self, tables: Collection[Table]) -> Iterator[TableMaintenance]:
        """Maintain the tables and yield the result of each, as it ends."""
        self._state = read_state(self.layout)
        bronze = [table for table in tables if table.kind is TableKind.BRONZE]
        for table in bronze:
            yield self._time_and_catch(table, self._bronze)
        others = [table for table in tables if table.kind is not TableKind.BRONZE]
        for group in _groups(others, self.request.threads):
            self.give_way()
            if self.stop.is_set():
                return
            with ThreadPoolExecutor(len(group), thread_name_prefix="upkeep") as pool:
                yield from pool.map(lambda table: self._time_and_catch(table, self._other), group)
        if self.request.whole and not self.request.dry_run:
            self._note(lambda state: replace(state, since=self.request.now, finished=True))

    def _bronze(self, table: Table) -> TableMaintenance:
        rows = self._retire()
        done = self._maintain_table(table, self.give_way)
        if self.request.vacuum is Vacuum.NO:
            return replace(done, rows=rows)
        # in one step: what comes after it is looked at is in no old file
        unread = read_unread(self.spark, self.layout, self.offsets_of)
        return replace(self._vacuum_table(table, done, unread), rows=rows)

    def _other(self, table: Table) -> TableMaintenance:
        rows = 0
        if table.path == self.layout.rounds:
            before = self.request.now - self.request.settings.rounds_kept
            rows = remove_old_rounds(self.spark, self.layout, before, dry_run=self.request.dry_run)
        done = replace(self._maintain_table(table, _go_on), rows=rows)
        return done if self.request.vacuum is Vacuum.NO else self._vacuum_table(table, done, UnreadBronze())

    def _retire(self) -> int:
        """Retire old rows, and return their number; completes an interrupted run first."""
        request, days = self.request, self.request.settings.bronze_days
        if not request.dry_run:
            self._finish_retiring()
        if days is None:
            return sum(self.retired.values())
        passed = read_unread(self.spark, self.layout, self.offsets_of).passed
        if not passed:
            return sum(self.retired.values())
        before = request.now - timedelta(days=days)
        if self.spark is None:
            return sum(self.retired.values()) + retention.count_retirable(self.layout, before, passed)
        rows = retention.retirable(self.spark, self.layout, before, passed)
        count = rows.count()
        if request.dry_run or not count:
            return sum(self.retired.values()) + count
        self._state = retention.begin(self.spark, self.layout, self._state, rows, request.new_id, request.now)
        self._finish_retiring()
        return sum(self.retired.values())

    def _finish_retiring(self) -> None:
        found = retention.finish(
            self._session(self.layout.bronze), self.layout, self._state, self._unread, self.give_way
        )
        for game, rows in found:
            self.retired[game] = self.retired.get(game, 0) + rows
        if self._state.retiring is not None:
            self._note(lambda state: replace(state, retiring=None))

    def _session(self, path: str) -> SparkSession:
        """Return the session that a table needs; raises `TableUnsuited` where there is none."""
        if self.spark is None:
            raise only_spark_reads(path)
        return self.spark

    def _unread(self) -> UnreadBronze:
        return read_unread(self.spark, self.layout, self.offsets_of)

    def _maintain_table(self, table: Table, between: Callable[[], None]) -> TableMaintenance:
        settings = self.request.settings
        if self._storage.reaches_tables(table.path):
            try:
                last = self._state.ordered.get(table.name)
                done, now = by_files.maintain_files(
                    self._storage, table, settings.target_bytes, last, dry_run=self.request.dry_run, between=between
                )
            except (NotImplementedError, deltalake.exceptions.DeltaError):
                # Spark knows more than deltalake
                pass
            else:
                self._ordered(table, last, now)
                return done
        self._for_spark.add(table.name)
        session = by_spark.upkeep_session(self._session(table.path), settings.target_bytes)
        done, seen, ordered = by_spark.maintain_by_spark(
            session, self._storage, table, self._state.seen.get(table.name), dry_run=self.request.dry_run
        )
        if not self.request.dry_run:
            self._saw(table, seen)
            self._ordered(table, None, ordered)
        return done

    def _vacuum_table(self, table: Table, done: TableMaintenance, unread: UnreadBronze) -> TableMaintenance:
        keep, dry_run = self.request.settings.kept, self.request.dry_run
        if self._storage.reaches_tables(table.path) and table.name not in self._for_spark:
            return self._removed_by_files(table.path, done, unread, keep)
        if not dry_run:
            self._removed_by_spark(table, unread, keep)
        return replace(done, removed=None, removed_bytes=None)

    def _removed_by_spark(self, table: Table, unread: UnreadBronze, keep: timedelta) -> None:
        late = tuple(_late(unread, self.request.now - keep))
        self.held_back += late
        if unread.oldest is not None:
            # a minute for clocks that differ
            keep = max(keep, self.request.now - unread.oldest + timedelta(minutes=1))
        session = by_spark.upkeep_session(self._session(table.path), self.request.settings.target_bytes)
        seen = by_spark.vacuum(session, self._storage, table, self._state.seen[table.name], keep)
        # what was kept for games goes as soon as they have read it, whether or not the table changes
        self._saw(table, replace(seen, vacuumed_ms=None) if late else seen)

    def _removed_by_files(
        self, path: str, done: TableMaintenance, unread: UnreadBronze, keep: timedelta
    ) -> TableMaintenance:
        old = by_files.unneeded_files(self._storage, path, keep)
        names = {key: key.rsplit("/", 1)[-1] for key in old}
        kept = unread.names.intersection(names.values())
        removed = [key for key, name in names.items() if name not in kept]
        if not self.request.dry_run:
            by_files.remove(self._storage, path, removed)
        self.held_back += _held(unread, kept)
        return replace(done, removed=len(removed), removed_bytes=sum(old[key] for key in removed))

    @property
    def _storage(self) -> Storage:
        return self.layout.storage

    def _time_and_catch(self, table: Table, work: Callable[[Table], TableMaintenance]) -> TableMaintenance:
        began = time.monotonic()
        try:
            done = work(table)
        except Exception as error:  # one table's failure must not stop its neighbours
            done = TableMaintenance(table, error=as_demux_error(error))
        return replace(done, seconds=time.monotonic() - began)

    def _ordered(self, table: Table, last: LastSort | None, now: LastSort | None) -> None:
        if now is not None and now != last:
            self._note(lambda state: replace(state, ordered={**state.ordered, table.name: now}))

    def _saw(self, table: Table, seen: SparkTableState) -> None:
        self._note(lambda state: replace(state, seen={**state.seen, table.name: seen}))

    def _note(self, change: Callable[[MaintenanceState], MaintenanceState]) -> None:
        with self._one_writes:
            self._state = change(self._state)
            write_state(self.layout, self._state)


def _held(unread: UnreadBronze, kept: Collection[str]) -> Iterator[HeldBack]:
    for game, one in sorted(unread.waiting.items()):
        if files := len(one.names.intersection(kept)):
            yield HeldBack(game, one.since, files)


def _late(unread: UnreadBronze, before: datetime) -> Iterator[HeldBack]:
    for game, one in sorted(unread.waiting.items()):
        if one.since is None or one.since < before:
            yield HeldBack(game, one.since, None)


def _groups(tables: Iterable[Table], size: int) -> Iterator[list[Table]]:
    group: list[Table] = []
    for table in tables:
        group.append(table)
        if len(group) == max(1, size):
            yield group
            group = []
    if group:
        yield group


def _go_on() -> None:
    return


def tables_of(
    layout: Layout, settings: MaintainSettings, names: Mapping[str, str], games: Collection[str]
) -> tuple[Table, ...]:
    """Return the tables that are there: bronze first, then quarantine, control and silver by name.

    Args:
        names: the games' exact names by key, as far as they are known.
        games: exact names; only their silver tables are meant then. None of them: all tables.
    """
    if games:
        keys = sorted(names_of(game).key for game in games)
        found = _silver(layout, settings, {**names, **{names_of(game).key: game for game in games}}, keys)
    else:
        keys = layout.storage.names(f"{layout.root}/silver")
        found = _all(layout, settings, names, keys)
    return tuple(table for table in found if layout.storage.table_exists(table.path))


def _all(
    layout: Layout, settings: MaintainSettings, names: Mapping[str, str], keys: Collection[str]
) -> Iterator[Table]:
    yield Table(TableKind.BRONZE, layout.bronze, "bronze")
    yield Table(TableKind.QUARANTINE, layout.quarantine, "quarantine")
    for name in layout.storage.names(f"{layout.root}/control"):
        yield Table(TableKind.CONTROL, f"{layout.root}/control/{name}", f"control/{name}")
    yield from _silver(layout, settings, names, keys)


def _silver(
    layout: Layout, settings: MaintainSettings, names: Mapping[str, str], keys: Collection[str]
) -> Iterator[Table]:
    for key in keys:
        yield Table(TableKind.SILVER, layout.silver(key), f"silver/{key}", settings.order_of(names.get(key)))
