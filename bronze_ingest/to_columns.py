"""Records taken apart, in the columns of bronze and of quarantine; pure, a whole Arrow batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bronze_ingest.envelope import extra_columns
from bronze_ingest.unwrap import Unwrapped, WrapperFormat, unwrap
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.delta.app_transactions import Batch
from demux.core.delta.batch_commit import REFUSED
from demux.core.tables import BRONZE, POSITION, QUARANTINE

_UNWRAPPED = BRONZE.columns[:5]
_BATCH_COLUMNS = {"ingested_at", "batch_id"}
_CARRIED = tuple(column for column in BRONZE if column not in _UNWRAPPED and column.name not in _BATCH_COLUMNS)

# quarantine's columns but those that are the same in a whole batch
EXAMINED = Struct(
    tuple(column for column in QUARANTINE if column.name not in {"stage", "query_id", "batch_id", "quarantined_at"})
)


def with_fields(wrapper: WrapperFormat) -> Struct:
    """Return bronze's columns but those that are the same in a whole batch, and `REFUSED`."""
    return Struct((*_UNWRAPPED, *_CARRIED, *extra_columns(wrapper.envelope), Column(REFUSED, Primitive.BOOLEAN)))


@dataclass(frozen=True, slots=True)
class UnwrappedBatch:
    """A batch of source records and what was found in them."""

    records: pa.RecordBatch
    record_ids: pa.Array
    fields: Unwrapped
    names: tuple[str, ...]

    def rows(self) -> pa.RecordBatch:
        """Return every record in the columns of `with_fields`."""
        fields = self.fields
        own = [fields.game_name, fields.schema_id, fields.guid, fields.indexes, fields.payload]
        carried = [self._column(column.name) for column in _CARRIED]
        refused = fields.causes.is_valid()
        return pa.RecordBatch.from_arrays([*own, *carried, *fields.extra, refused], names=list(self.names))

    def examined(self) -> pa.RecordBatch:
        """Return every record in the columns of `EXAMINED`; a good one has a NULL cause."""
        fields = self.fields
        found = [fields.causes, fields.game_name, fields.schema_id, fields.guid, fields.indexes]
        position = [self._column(column.name) for column in POSITION]
        record = [self.records.column(name) for name in ("value", "key", "headers")]
        arrays = [*found, *position, *record, fields.sentences]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in EXAMINED])

    def _column(self, name: str) -> pa.Array:
        return self.record_ids if name == "record_id" else self.records.column(name)


def take_apart(records: pa.RecordBatch, wrapper: WrapperFormat, batch: Batch, first: int) -> UnwrappedBatch:
    """Return what is in records with the columns of `SOURCE`; `first` is the first one's number in the micro-batch.

    A list of headers without any is NULL in what comes out.
    """
    at = records.schema.get_field_index("headers")
    records = records.set_column(at, records.schema.field(at), _null_if_empty(records.column(at)))
    fields = unwrap(records.column("value"), records.column("headers"), wrapper, records.column("refused_sentence"))
    names = tuple(column.name for column in with_fields(wrapper))
    return UnwrappedBatch(records, _record_ids(records, batch, first), fields, names)


def _null_if_empty(lists: pa.Array) -> pa.Array:
    if not len(lists.flatten()):
        return pa.nulls(len(lists), lists.type)
    return pc.if_else(pc.equal(lists.value_lengths(), 0), pa.scalar(None, lists.type), lists)


def _record_ids(records: pa.RecordBatch, batch: Batch, first: int) -> pa.Array:
    """Return ids (STRING) that no other record of the root has: the source's own, the position, or a number."""
    topic, offset = records.column("topic"), records.column("offset").cast(pa.string())
    ids = pc.binary_join_element_wise(topic, records.column("partition").cast(pa.string()), offset, "/")
    given = records.column("record_id")
    if given.null_count < len(given):
        ids = pc.coalesce(given, ids)
    if ids.null_count:
        numbers = pa.array(np.arange(first, first + len(records))).cast(pa.string())
        prefix = f"{batch.query_id}/{batch.batch_id}"
        ids = pc.coalesce(ids, pc.binary_join_element_wise(records.column("origin"), prefix, numbers, "/"))
    return ids
