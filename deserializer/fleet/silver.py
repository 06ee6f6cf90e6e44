"""The games' silver tables as the driver knows them: columns, message, and where each game stands in bronze.

The position is in the table itself, as the version of an application transaction: no checkpoint can be lost, or older
than the table. The transaction's id has bronze's own id, so that a bronze table made anew begins anew.
For tables of this machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from demux.columns import Struct
from demux.delta_log import commit_in, transaction_in
from demux.errors import TableUnsuited
from demux.spark_types import MESSAGE, columns_in_json, spark_struct
from demux.table_files import TableFile, append_files, remove_files, takes_files
from demux.tables import SILVER_RESERVED

# a commit for each time that somebody replayed or compacted
_COMMITS_LOOKED_AT = 100


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
    _open: DeltaTable | None

    @staticmethod
    def at(path: str) -> SilverTable:
        """Return the table as it is now."""
        try:
            table = SilverTable(path, Struct(()), None, DeltaTable(path))
        except TableNotFoundError:
            return SilverTable(path, Struct(()), None, None)
        table._read()
        return table

    @property
    def exists(self) -> bool:
        """Whether there is a table."""
        return self._open is not None

    @property
    def columns(self) -> Struct:
        """Its payload columns."""
        return Struct(tuple(column for column in self.everything if column.name not in SILVER_RESERVED))

    def has_rows(self) -> bool:
        """Return whether it has rows."""
        return self._open is not None and self._open.count() > 0

    def require_suited(self) -> None:
        """Check that its files may be written without Spark.

        Raises:
            TableUnsuited: it has partitions, or asks of its writers what these files do not give.
        """
        if self._open is not None:
            require_suited(self._open, self.path)

    def transaction(self, app_id: str) -> int | None:
        """Return the newest version of the application's transactions; None when there is none."""
        if self._open is None:
            return None
        found = self._open.transaction_version(app_id)
        return None if found is None else int(found)

    def last_written_by(self, app_id: str, version: int) -> bool:
        """Return whether no batch was written since this transaction, and nothing taken away: at most rows that moved.

        Looks at the newest 100 commits.
        """
        if self._open is None:
            return False
        newest = self._open.version()
        for at in range(newest, max(-1, newest - _COMMITS_LOOKED_AT), -1):
            file = Path(self.path, "_delta_log", f"{at:020}.json")
            text = file.read_text(encoding="utf-8") if file.exists() else ""
            if transaction_in(text, app_id) == version:
                return True
            if not text or '{"txn"' in text or '"mode":"Overwrite"' in text or commit_in(at, text, "").removed:
                return False
        return False

    def ids_among(self, wanted: pa.Array) -> frozenset[str]:
        """Return which of these record ids (STRING) the table has; reads one column."""
        if self._open is None:
            return frozenset()
        found: set[str] = set()
        for batch in self._open.to_pyarrow_dataset().to_batches(columns=["_record_id"]):
            mine = batch.column(0)
            found.update(mine.filter(pc.is_in(mine, wanted)).to_pylist())
        return frozenset(found)

    def create(self, columns: Struct, message: str | None, comment: str) -> None:
        """Make the table with these columns, the origin's too; a second call does nothing."""
        if self._open is None:
            schema = Schema.from_json(json.dumps(schema_of(columns, message)))
            self._open = DeltaTable.create(self.path, schema, mode="ignore", description=comment or None)
            self._read()

    def refresh(self) -> None:
        """Read what others did to the table."""
        if self._open is not None:
            self._open.update_incremental()
            self._read()

    def append(self, files: Sequence[TableFile], app_id: str, version: int) -> None:
        """Append files and say with which transaction, in one commit; once, however often it is called."""
        assert self._open is not None
        try:
            append_files(self._open, files, None, {app_id: version})
        except Exception:
            # the commit may be there all the same
            self._open.update_incremental()
            if self.transaction(app_id) != version:
                remove_files(self.path, [file.path for file in files])
                raise
            return
        self._open.update_incremental()

    def _read(self) -> None:
        assert self._open is not None
        text = self._open.schema().to_json()
        fields = (field["metadata"].get(MESSAGE) for field in json.loads(text)["fields"])
        self.everything = columns_in_json(text)
        self.message = next((name for name in fields if name is not None), None)


def schema_of(columns: Struct, message: str | None) -> dict[str, Any]:
    """Return the schema of a silver table as Spark writes schemas; its first payload column says which message."""
    schema: dict[str, Any] = spark_struct(columns).jsonValue()
    first = schema["fields"][0]
    if message is not None and first["name"] not in SILVER_RESERVED:
        first["metadata"][MESSAGE] = message
    return schema


def require_suited(table: DeltaTable, path: str) -> None:
    """Check that a table's files may be written without Spark; raises as `SilverTable.require_suited`."""
    metadata = table.metadata()
    asks = [f"partitions by {', '.join(metadata.partition_columns)}"] if metadata.partition_columns else []
    asks += [name for name in metadata.configuration if name.startswith(("delta.constraints.", "delta.columnMapping."))]
    if not asks and not takes_files(path):
        asks = ["features of its protocol"]
    if asks:
        raise TableUnsuited(
            f"The table {path} asks more of who writes it than files alone: {', '.join(asks)}.",
            "Set run.engine: stream, whose rows Spark itself writes.",
            table=path,
        )


def fleet_id(bronze: str) -> str:
    """Return the id of the transactions that say where a game stands in this bronze table."""
    return f"demux-fleet/{DeltaTable(bronze).metadata().id}"
