"""The games' silver tables as the driver knows them: columns, message, and where the offset of each game in bronze.

The offset is in the table itself, as the version of an application transaction (`bronze_offset`): no checkpoint can
be lost, or older than the table. For tables that are reached without Spark.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from demux.core.columns.spark import MESSAGE, columns_of_spark, message_in, spark_struct, with_columns
from demux.core.columns.types import Struct
from demux.core.delta.commit import Replacement, alter_after, append_after
from demux.core.delta.parquet_writer import TableFile, append_files, remove_files, takes_files
from demux.core.delta.scan import sizes_of, table_rows
from demux.core.errors import ConcurrentChange, TableUnsuited
from demux.core.extras import deltalake
from demux.core.storage.files import Storage
from demux.core.tables import SILVER_RESERVED
from deserializer.offsets.days import Span
from deserializer.offsets.logged_files import files_of_table
from deserializer.silver.auto_compaction import is_due, keep_up
from deserializer.silver.comments import Description
from deserializer.silver.rewrite import widen_by_files, widen_schema


@dataclass(frozen=True, slots=True)
class SilverReplacement:
    """Rows of a silver table that one commit puts into the place of others.

    Attributes:
        removed: the files of these others, by the path that the log has; only where the table's files are replaced.
        condition: SQL that selects the same rows, for Spark's writer; None: all rows.
        added: files in the table's folder, in no commit yet.
        rebuilt: the table's schema and comment from then on; None: they stay.
        transactions: versions of application transactions by id, at most one.
    """

    removed: Collection[str]
    condition: str | None
    added: Sequence[TableFile]
    rebuilt: tuple[StructType, str] | None = None
    transactions: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class SilverTable:
    """One game's table, there or not yet.

    Attributes:
        path: where it is.
        everything: its columns; none of a table that is not there.
        message: the full name of the message that it holds; None while no column says so.
    """

    path: str
    everything: Struct
    message: str | None
    _storage: Storage
    _open: deltalake.DeltaTable | None
    # commits of our own that `_open` does not know yet
    _unread_commits: int = 0
    # compressed texts of commits of our own, by version, since the last upkeep
    _texts: dict[int, bytes] = field(default_factory=dict)
    # the version of each application's transactions on which our next commit follows
    _seen: dict[str, int | None] = field(default_factory=dict)

    @staticmethod
    def at(storage: Storage, path: str, opened: deltalake.DeltaTable | None = None) -> SilverTable:
        """Return the table as it is now, or as it was opened."""
        try:
            table = SilverTable(path, Struct(()), None, storage, opened or storage.table(path))
        except deltalake.exceptions.TableNotFoundError:
            return SilverTable(path, Struct(()), None, storage, None)
        table._read()
        return table

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._open is not None

    @property
    def columns(self) -> Struct:
        """Its payload columns."""
        return payload_in(self.everything)

    @property
    def schema(self) -> StructType:
        """Its schema, with all that columns say of themselves; empty of a table that is not there."""
        return StructType([]) if self._open is None else _schema_in(self._open)

    @property
    def opened(self) -> deltalake.DeltaTable | None:
        """The table with our own commits; None where there is none."""
        return self._caught_up()

    @property
    def needs_upkeep(self) -> bool:
        """Whether the next commit is one after which the table's files are looked at."""
        return self._open is not None and is_due(self.path, self._open.version() + self._unread_commits + 1)

    def files_of(self, span: Span | None) -> dict[str, int]:
        """Return the files that may have rows of these days, or all, with their bytes, by the path that the log has."""
        table = self._caught_up()
        logged = [] if table is None else files_of_table(table, self.path, "_timestamp")[None]
        return {file.path: file.bytes for file in logged if file.may_have(span)}

    def has_rows(self) -> bool:
        """Return whether it has rows."""
        table = self._caught_up()
        return table is not None and table.count() > 0

    def require_suited(self) -> None:
        """Check that its files may be written without Spark.

        Raises:
            TableUnsuited: it has partitions, or asks of its writers what these files do not give.
        """
        table = self._caught_up()
        if table is not None:
            require_suited(table, self.path)

    def transaction(self, app_id: str) -> int | None:
        """Return the newest version of the application's transactions; None when there is none."""
        table = self._caught_up()
        if table is None:
            return None
        found = table.transaction_version(app_id)
        self._seen[app_id] = None if found is None else int(found)
        return self._seen[app_id]

    def ids_among(self, wanted: pa.Array) -> frozenset[str]:
        """Return which of these record ids (STRING) the table has; reads one column."""
        table = self._caught_up()
        if table is None:
            return frozenset()
        found: set[str] = set()
        for batch in table_rows(self._storage, table, self.path, ["_record_id"]):
            mine = batch.column(0)
            found.update(mine.filter(pc.is_in(mine, wanted)).to_pylist())
        return frozenset(found)

    def create(self, columns: Struct, message: str | None, comment: str) -> None:
        """Make the table with these columns, the origin's too; a second call does nothing."""
        self.create_as(schema_of(columns, message), comment)

    def create_as(self, schema: Mapping[str, Any], comment: str) -> None:
        """Make the table with this schema, as Spark writes schemas; a second call does nothing."""
        if self._open is None:
            self._open = self._storage.create_table(self.path, schema, comment or None)
            self._read()

    def alter(self, description: Description, message: str | None) -> bool:
        """Add columns, and make others wider, with comments, in one commit; return whether that is possible by files.

        For wider numbers the rows are rewritten; a large table is left to Spark, whose tasks share it.
        """
        table = self._caught_up()
        assert table is not None
        now, columns = _schema_in(table), description.all_columns
        wider = widen_schema(now, description.columns)
        schema = with_columns(wider, columns, message, comments=description.is_new)
        if schema is None:
            return False
        try:
            if wider == now:
                is_done = alter_after(self._storage, table, self.path, schema.jsonValue(), description.comment or None)
            else:
                is_done = widen_by_files(self._storage, table, self.path, schema, description.comment or None)
        except OSError:  # Spark may know better, or says what is wrong
            return False
        self.refresh()
        return is_done

    def refresh(self) -> None:
        """Read what others did to the table."""
        if self._open is not None:
            self._open = self._storage.catch_up(self._open, self.path)
            self._unread_commits = 0
            self._read()

    def append(self, files: Sequence[TableFile], app_id: str, version: int) -> None:
        """Append files and say with which transaction, in one commit; once, however often it is called.

        Raises:
            ConcurrentChange: the table has another type of a column by now, or another process has written a
                transaction of the application since this one asked for it; nothing was committed.
        """
        assert self._open is not None
        needs_upkeep = self.needs_upkeep
        if self._try_append(files, app_id, version):
            self._seen[app_id] = version
            if needs_upkeep:
                newest = self._open.version() + self._unread_commits
                self._open = self._storage.renew(self._open, self.path)
                newest = keep_up(self._storage, self._open, self.path, newest, self._texts)
                self._unread_commits = newest - self._open.version()
                self._texts.clear()
            return
        # another process was faster, and may have changed what the table asks for
        before, has_seen, seen = self.everything, app_id in self._seen, self._seen.get(app_id)
        self.refresh()
        found = self.transaction(app_id)
        if found == version:
            return
        if has_seen and found != seen:
            remove_files(self._storage, self.path, [file.path for file in files])
            raise ConcurrentChange(
                f"Another process decoded rows of {self.path} meanwhile.",
                "Run the same command again; nothing is lost.",
            )
        self.require_suited()
        if files and _has_retyped(before, self.everything):
            remove_files(self._storage, self.path, [file.path for file in files])
            raise ConcurrentChange(
                f"Columns of {self.path} got another type while rows were decoded.", "Run the same command again."
            )
        # a failure leaves the files: the commit may have succeeded
        append_files(self._open, files, None, {app_id: version})
        self._open.update_incremental()

    def replace(self, replacement: SilverReplacement) -> None:
        """Replace files of the table as it was read, in one commit; the table is there.

        Raises:
            ConcurrentChange: another process has written the table since; nothing was committed.
        """
        rebuilt, schema, comment = replacement.rebuilt, None, None
        table = self._caught_up()
        assert table is not None
        sizes = sizes_of(table)
        if rebuilt is not None and rebuilt != (self.schema, table.metadata().description):
            schema, comment = rebuilt[0].jsonValue(), rebuilt[1] or None
        removed = {path: sizes[path] for path in replacement.removed}
        commit = Replacement("WRITE", removed, replacement.added, replacement.transactions, schema, comment)
        if not commit.commit(self._storage, table, self.path):
            raise ConcurrentChange(
                f"Another process wrote {self.path} meanwhile.", "Run the same command again; nothing is lost."
            )

    def _try_append(self, files: Sequence[TableFile], app_id: str, version: int) -> bool:
        assert self._open is not None
        try:
            newest = self._open.version() + self._unread_commits
            text = append_after(self._storage, newest, self.path, files, {app_id: version})
        except OSError:  # deltalake may know better, or says what is wrong
            return False
        if text is None:
            return False
        self._unread_commits += 1
        self._texts[newest + 1] = zlib.compress(text)
        return True

    def _caught_up(self) -> deltalake.DeltaTable | None:
        """Return the table with our own commits; None where there is none."""
        if self._open is not None and self._unread_commits:
            self._open = self._storage.catch_up(self._open, self.path)
            self._unread_commits = 0
        return self._open

    def _read(self) -> None:
        assert self._open is not None
        schema = _schema_in(self._open)
        self.everything, self.message = columns_of_spark(schema), message_in(schema)


def _schema_in(table: deltalake.DeltaTable) -> StructType:
    return StructType.fromJson(json.loads(table.schema().to_json()))


def _has_retyped(before: Struct, after: Struct) -> bool:
    types = {column.name: column.type for column in before}
    return any(types.get(column.name, column.type) != column.type for column in after)


def payload_in(everything: Struct) -> Struct:
    """Return the payload columns among a silver table's."""
    return Struct(tuple(column for column in everything if column.name not in SILVER_RESERVED))


def schema_of(columns: Struct, message: str | None) -> dict[str, Any]:
    """Return the schema of a silver table as Spark writes schemas; its first payload column says which message."""
    schema: dict[str, Any] = spark_struct(columns).jsonValue()
    first = schema["fields"][0]
    if message is not None and first["name"] not in SILVER_RESERVED:
        first["metadata"][MESSAGE] = message
    return schema


def require_suited(table: deltalake.DeltaTable, path: str) -> None:
    """Check that a table's files may be written without Spark; raises as `SilverTable.require_suited`."""
    metadata = table.metadata()
    asks = [f"partitions by {', '.join(metadata.partition_columns)}"] if metadata.partition_columns else []
    asks += [name for name in metadata.configuration if name.startswith(("delta.constraints.", "delta.columnMapping."))]
    if not asks and not takes_files(table):
        asks = ["features of its protocol"]
    if asks:
        raise TableUnsuited(
            f"The table {path} asks more of who writes it than files alone: {', '.join(asks)}.",
            "Set run.sink: auto or spark, so that Spark itself writes it.",
            table=path,
        )
