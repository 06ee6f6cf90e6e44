"""A record of quarantine, and what its bytes hold as far as they can be read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.causes import Stage
from demux.core.errors import SchemaInvalid, SubjectAmbiguous
from demux.core.protobuf.schema.descriptor_pool import pool_of
from demux.core.protobuf.wire.wire_dump import Dump, dump
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.subject_choice import ForeignSchema, GameSchemas, SharedSchema, choose


@dataclass(frozen=True, slots=True)
class QuarantineRecord:
    """A row of quarantine, in the columns of `demux.core.tables.QUARANTINE`; `content` is its `bytes`."""

    stage: str
    cause: str
    game: str | None
    ref: SchemaRef
    record_id: str
    origin: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    timestamp: datetime | None
    content: bytes | None
    key: bytes | None
    headers: tuple[tuple[str | None, bytes | None], ...]
    sentence: str
    query_id: str | None
    batch_id: int | None
    quarantined_at: datetime | None


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record with what its bytes hold.

    Attributes:
        message: the full name of the message that they should be; None where unknown.
        dump: what they hold; None where there are none.
    """

    record: QuarantineRecord
    message: str | None
    dump: Dump | None


def record_of(row: Mapping[str, Any]) -> QuarantineRecord:
    """Return the record of a row by column name."""
    return QuarantineRecord(
        row["stage"],
        row["cause"],
        row["game_name"] if row["stage"] == Stage.SILVER.value else None,
        SchemaRef(row["schema_id"], row["schema_guid"], row["message_indexes"]),
        row["record_id"] or "",
        row["origin"],
        row["topic"],
        row["partition"],
        row["offset"],
        row["timestamp"],
        row["bytes"],
        row["key"],
        tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        row["sentence"] or "",
        row["query_id"],
        row["batch_id"],
        row["quarantined_at"],
    )


@dataclass(frozen=True, slots=True)
class KeptSchemas:
    """The schemas of `control/schemas`."""

    by_id: Mapping[tuple[str, int], SharedSchema]
    by_guid: Mapping[tuple[str, str], SharedSchema]
    subjects: Mapping[str, frozenset[str]]

    def of(self, registry: str, ref: SchemaRef) -> SharedSchema | None:
        """Return the schema that a row names; None where it is not kept."""
        if ref.guid is not None:
            return self.by_guid.get((registry, ref.guid))
        return None if ref.schema_id is None else self.by_id.get((registry, ref.schema_id))


def decode_record(record: QuarantineRecord, game: GameSchemas, schemas: KeptSchemas, most: int) -> DecodedRecord:
    """Return the record with what its bytes hold."""
    if record.content is None:
        return DecodedRecord(record, None, None)
    message = None
    # at stage bronze it is the whole record, of which no more is known
    if record.stage == Stage.SILVER.value and (shared := schemas.of(game.registry, record.ref)) is not None:
        message = _message(shared, record.ref.message_indexes, game, schemas.subjects.get(game.registry, frozenset()))
    return DecodedRecord(record, None if message is None else message.full_name, dump(record.content, message, most))


def _message(
    shared: SharedSchema, indexes: str | None, game: GameSchemas, subjects: frozenset[str]
) -> Descriptor | None:
    try:
        meant = choose(shared, indexes, game, subjects)
        if isinstance(meant, ForeignSchema):
            return None
        return pool_of(FileDescriptorSet.FromString(meant.descriptor_set)).FindMessageTypeByName(meant.message)
    except (SchemaInvalid, SubjectAmbiguous, KeyError):
        # what the schema lacks is why the row is here
        return None
