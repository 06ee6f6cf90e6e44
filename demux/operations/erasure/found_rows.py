"""Rows of tables as a search keeps them: where a record is, what is known of it, and where that was found. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.columns.arrow import arrow_fields, as_type
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.tables import POSITION
from demux.operations.erasure.payload_matching import LOOKED_AT, MatchVerdict, PayloadQuery, verdicts_of
from demux.operations.predicate.ast import Predicate
from demux.operations.predicate.evaluate import matching

BATCH = Column("batch_id", Primitive.BIGINT)
# what `control/removed` gets of a record; a time is a number, as DuckDB has not all years
FOUND = Struct((*(replace(one, type=Primitive.BIGINT) if one.name == "timestamp" else one for one in POSITION), BATCH))
JUDGED = Struct((*FOUND, Column("verdict", Primitive.STRING), Column("found_in", Primitive.STRING)))
_SCHEMA = pa.schema(arrow_fields(JUDGED))


class FoundIn(Enum):
    """Where a record was found; in bronze alone what was dropped from quarantine."""

    SILVER = "silver"
    QUARANTINE = "quarantine"
    BRONZE = "bronze"


def judged_rows(
    question: PayloadQuery,
    place: FoundIn,
    chosen: Callable[[pa.RecordBatch], pa.BooleanArray],
    rows: pa.RecordBatch,
) -> pa.RecordBatch:
    """Return what is known of the chosen rows of quarantine, or of bronze, but for those that are another's."""
    rows = rows.filter(chosen(rows))
    columns = [
        rows.column("payload" if one.name == "bytes" and place is FoundIn.BRONZE else one.name) for one in LOOKED_AT
    ]
    verdicts = verdicts_of(question, pa.RecordBatch.from_arrays(columns, [one.name for one in LOOKED_AT]))
    found = _located(rows, "", rows.column("batch_id"), [one.value for one in verdicts], place)
    return found.filter(pc.not_equal(found.column("verdict"), MatchVerdict.OTHER.value))


def matching_rows(predicate: Predicate, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of silver that match, in the columns `JUDGED`."""
    found = rows.filter(matching(predicate, rows))
    number = len(found)
    batches = pa.nulls(number, pa.int64())
    return _located(found, "_", batches, [MatchVerdict.MEANT.value] * number, FoundIn.SILVER)


def _located(
    rows: pa.RecordBatch, prefix: str, batches: pa.Array, verdicts: list[str], place: FoundIn
) -> pa.RecordBatch:
    position = [
        as_type(rows.column(f"{prefix}{one.name}"), field.type) for one, field in zip(POSITION, _SCHEMA, strict=False)
    ]
    columns = [*position, batches, pa.array(verdicts, pa.string()), pa.repeat(place.value, len(rows))]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
