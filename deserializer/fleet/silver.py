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

from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from demux.columns import Struct
from demux.delta_log import transaction_in
from demux.spark_types import MESSAGE, columns_in_json, spark_struct
from demux.table_files import TableFile, append_files, remove_files, takes_files
from demux.tables import SILVER_RESERVED


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

    def takes_files(self) -> bool:
        """Return whether its files may be written without Spark."""
        return self._open is None or takes_files(self.path)

    def transaction(self, app_id: str) -> int | None:
        """Return the newest version of the application's transactions; None when there is none."""
        if self._open is None:
            return None
        found = self._open.transaction_version(app_id)
        return None if found is None else int(found)

    def newest_is(self, app_id: str, version: int) -> bool:
        """Return whether the newest commit is this transaction."""
        if self._open is None:
            return False
        newest = Path(self.path, "_delta_log", f"{self._open.version():020}.json")
        return newest.exists() and transaction_in(newest.read_text(encoding="utf-8"), app_id) == version

    def ids(self) -> frozenset[str]:
        """Return the ids of all its records; reads one column."""
        if self._open is None:
            return frozenset()
        return frozenset(self._open.to_pyarrow_table(columns=["_record_id"]).column("_record_id").to_pylist())

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


def fleet_id(bronze: str) -> str:
    """Return the id of the transactions that say where a game stands in this bronze table."""
    return f"demux-fleet/{DeltaTable(bronze).metadata().id}"
