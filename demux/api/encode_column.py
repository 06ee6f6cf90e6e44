"""`demux.encode`: typed columns of any frame to Protobuf payloads, without a JAR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from demux.api.frame_columns import framing_of, place_of_column, require_free
from demux.api.payload_schemas import (
    Registry,
    SchemaFile,
    Schemas,
    open_named_registry,
    schema_of_file,
    schemas_of_ids,
    schemas_of_subject,
)
from demux.core.columns.spark import spark_struct
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.errors import ArgumentInvalid, SchemaInvalid
from demux.core.protobuf.encode.encoder import encoder_of
from demux.core.protobuf.encode.message_column import UNWRITTEN_ROW, MessageColumn, column_mistakes, to_payloads
from demux.core.protobuf.schema.comments import without_comments
from demux.core.protobuf.schema.message_selection import indexes_of_message
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.protobuf.wire.framing import frame_bytes
from demux.core.settings.source import WrapperFraming
from demux.core.spark.map_in_arrow import map_in_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def encode(
    frame: DataFrame,
    columns: str | Sequence[str],
    *,
    registry: Registry | None = None,
    subject: str | None = None,
    schema_id: int | None = None,
    schema: SchemaFile | None = None,
    message: str | None = None,
    framing: str | WrapperFraming = WrapperFraming.BARE,
    into: str = "value",
    quarantine: str = "_quarantine",
) -> DataFrame:
    """Return the frame with a column of payloads, for a batch or a stream; docs/decode.md has examples.

    The result has all of the frame's columns, the payloads (BINARY), and a column that is NULL where the row is good:
    STRUCT<cause: STRING, sentence: STRING>. A NULL struct is a good row without a payload. A column is the field that
    the column rules (docs/columns.md) give its name to, whatever the case; a field without a column is unset.

    Args:
        frame: any frame; with Spark Connect too.
        columns: the name of a struct with the message's fields, or the names of a column for each field.
        registry: as for `demux.decode`.
        subject: a subject of the registry; its newest version is written.
        schema_id: the id of the schema in the registry, instead of a subject.
        schema: instead of a registry, the path of a `.proto` file, or a descriptor set as path or bytes.
        message: the full name of the message; None for the first of the file.
        framing: `bare`, or `confluent` for magic byte, id and message indexes before each payload.
        into: name of the column of payloads.
        quarantine: name of the column that says why a row has no payload.

    Raises:
        ArgumentInvalid: the frame has no such column, a column does not fit its field, or arguments contradict.
        SchemaUnknown: the registry has no such subject or id.
        SchemaInvalid: the schema cannot be used.
        RegistryUnavailable, RegistryRefused, SecretMissing, SettingsInvalid: the registry gives no answer.
    """
    framed = framing_of(framing)
    is_struct = isinstance(columns, str)
    places = tuple(place_of_column(frame, name) for name in ([columns] if isinstance(columns, str) else columns))
    chosen = _chosen(registry, subject, schema_id, schema, message)
    if framed is WrapperFraming.CONFLUENT and schema is not None:
        raise ArgumentInvalid("A frame has the id of a registry, and `schema` has none.", "Name a registry.")
    descriptor_set = without_comments(chosen.descriptor_set)
    _require_fields(frame, places, is_struct, descriptor_set, chosen.message)
    prefix = b""
    if framed is WrapperFraming.CONFLUENT:
        prefix = frame_bytes(chosen.schema_id, indexes_of_message(descriptor_set, chosen.message))
    made = (Column(into, Primitive.BINARY), Column(quarantine, UNWRITTEN_ROW))
    require_free((one.name for one in made), frozenset(name.lower() for name in frame.columns))
    fields = type(frame.schema)([*frame.schema.fields, *spark_struct(Struct(made)).fields])
    source = MessageColumn(places, is_struct, descriptor_set, chosen.message, prefix)
    return map_in_arrow(frame, to_payloads(source, into, quarantine), fields)


def _chosen(
    registry: Registry | None,
    subject: str | None,
    schema_id: int | None,
    schema: SchemaFile | None,
    message: str | None,
) -> CompiledSchema:
    if schema is not None:
        if registry is not None or subject is not None or schema_id is not None:
            raise ArgumentInvalid("The argument `schema` goes with no registry, subject and id.", "Leave them out.")
        return schema_of_file(schema, message)
    if registry is None or (subject is None) == (schema_id is None):
        raise ArgumentInvalid(
            "Nothing says which schema is written.",
            "Name a registry with a subject or a schema_id (one of them), or a file by `schema`.",
        )
    opened = open_named_registry(registry)
    schemas: Schemas = (
        schemas_of_subject(opened, subject, message)
        if subject is not None
        else schemas_of_ids(opened, [schema_id] if schema_id is not None else [], message)
    )
    newest = schemas[next(reversed(schemas))]
    if isinstance(newest, SchemaInvalid):
        raise newest
    return newest


def _require_fields(
    frame: DataFrame, places: Sequence[int], is_struct: bool, descriptor_set: bytes, message: str
) -> None:
    fields = [frame.schema.fields[place] for place in places]
    struct = type(frame.schema)(fields)
    if is_struct:
        kind = fields[0].dataType
        if not isinstance(kind, type(frame.schema)):
            raise ArgumentInvalid(
                f"The column {fields[0].name!r} is {kind.simpleString().upper()}, not a STRUCT.",
                "Name a struct, or a list of columns.",
                column=fields[0].name,
            )
        struct = kind
    if mistakes := tuple(column_mistakes(encoder_of(descriptor_set, message).shape, struct)):
        raise ArgumentInvalid(
            " ".join(mistakes),
            "Rename or cast the columns as docs/columns.md has them, or leave out those that are no fields.",
            mistakes=mistakes,
        )
