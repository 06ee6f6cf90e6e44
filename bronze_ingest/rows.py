"""Records taken apart, in the columns of bronze and of quarantine; pure, a whole Arrow batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from bronze_ingest.envelope import extra_columns
from bronze_ingest.unwrap import Unwrapped, WrapperFormat, unwrap
from demux.columns import Column, Primitive, Struct
from demux.commits import REFUSED
from demux.tables import BRONZE, POSITION

_UNWRAPPED = BRONZE.columns[:5]
_BATCH_COLUMNS = {"ingested_at", "batch_id"}
_CARRIED = tuple(column for column in BRONZE if column not in _UNWRAPPED and column.name not in _BATCH_COLUMNS)

# quarantine's columns but those that are the same in a whole batch
EXAMINED = Struct(
    (
        Column("cause", Primitive.STRING),
        Column("game_name", Primitive.STRING),
        Column("schema_id", Primitive.INT),
        Column("schema_guid", Primitive.STRING),
        Column("message_indexes", Primitive.STRING),
        *POSITION,
        Column("bytes", Primitive.BINARY),
        Column("sentence", Primitive.STRING),
    )
)


def with_fields(wrapper: WrapperFormat) -> Struct:
    """Return bronze's columns but those that are the same in a whole batch, and `REFUSED`."""
    return Struct((*_UNWRAPPED, *_CARRIED, *extra_columns(wrapper.envelope), Column(REFUSED, Primitive.BOOLEAN)))


@dataclass(frozen=True, slots=True)
class TakenApart:
    """A batch of positioned records (`spark_sink.positioned`) and what was found in them."""

    records: pa.RecordBatch
    fields: Unwrapped
    names: tuple[str, ...]

    def rows(self) -> pa.RecordBatch:
        """Return every record in the columns of `with_fields`."""
        fields = self.fields
        own = [fields.game_name, fields.schema_id, fields.guid, fields.indexes, fields.payload]
        carried = [self.records.column(column.name) for column in _CARRIED]
        refused = fields.causes.is_valid()
        return pa.RecordBatch.from_arrays([*own, *carried, *fields.extra, refused], names=list(self.names))

    def examined(self) -> pa.RecordBatch:
        """Return every record in the columns of `EXAMINED`; a good one has a NULL cause."""
        fields = self.fields
        found = [fields.causes, fields.game_name, fields.schema_id, fields.guid, fields.indexes]
        position = [self.records.column(column.name) for column in POSITION]
        arrays = [*found, *position, self.records.column("value"), fields.sentences]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in EXAMINED])


def take_apart(records: pa.RecordBatch, wrapper: WrapperFormat) -> TakenApart:
    """Return what is in a batch of positioned records."""
    fields = unwrap(records.column("value"), records.column("headers"), wrapper, records.column("refused_sentence"))
    return TakenApart(records, fields, tuple(column.name for column in with_fields(wrapper)))
