"""Tables written and read without Spark: what a test starts from, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from demux.core.causes import Cause, Stage
from demux.core.columns.arrow import arrow_fields
from demux.core.columns.types import Struct
from demux.core.tables import BRONZE, QUARANTINE

Row = Mapping[str, Any]
MOMENT = datetime(2025, 1, 2, 3, 4, 5, 678_901, tzinfo=timezone.utc)


def write(
    path: str,
    columns: Struct,
    rows: Sequence[Row],
    *,
    partition_by: str | None = None,
    txn: tuple[str, int] | None = None,
) -> None:
    """Append the rows in one commit; columns that a row lacks are NULL.

    Args:
        path: the table's path.
        columns: the table's columns.
        rows: values by column name.
        partition_by: the partition column of a new table.
        txn: the application's id and version that the commit carries.
    """
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=pa.schema(arrow_fields(columns)))
    write_deltalake(
        path,
        table,
        mode="append",
        partition_by=partition_by,
        commit_properties=CommitProperties(app_transactions=[Transaction(*txn)] if txn else None),
    )


def read(path: str, *names: str) -> list[tuple[Any, ...]]:
    """The rows of a table in these columns, sorted."""
    table = DeltaTable(path).to_pyarrow_table(columns=list(names))
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=repr)


def names_in(path: str) -> list[str]:
    """The names of a table's columns, in order."""
    return [field.name for field in DeltaTable(path).schema().fields]


def bronze_row(game: str, offset: int, schema_id: int | None = 1, payload: bytes = b"") -> dict[str, Any]:
    """A row of `BRONZE`."""
    return {"game_name": game, "schema_id": schema_id, "payload": payload, **position(offset)}


def quarantine_row(game: str, offset: int, cause: Cause, schema_id: int | None, payload: bytes = b"") -> dict[str, Any]:
    """A row of `QUARANTINE` at stage silver."""
    stage = {"stage": Stage.SILVER.value, "cause": cause.value, "sentence": "Then.", "game_name": game}
    return stage | {"schema_id": schema_id, "bytes": payload, **position(offset)}


def position(offset: int) -> dict[str, Any]:
    """Where a record came from; its id is `t/0/<offset>`."""
    return {
        "origin": "delta",
        "topic": "t",
        "partition": 0,
        "offset": offset,
        "timestamp": MOMENT,
        "record_id": f"t/0/{offset}",
    }


def write_bronze(path: str, *rows: Row) -> None:
    """Append to a bronze table."""
    write(path, BRONZE, rows, partition_by="game_name")


def write_quarantine(path: str, *rows: Row) -> None:
    """Append to a quarantine table."""
    write(path, QUARANTINE, rows)
