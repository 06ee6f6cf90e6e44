"""`demux.decode`: Protobuf payloads in a column of any frame to typed columns, without a JAR."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from demux.api.frame_columns import framing_of, place_of_column, require_free
from demux.api.payload_schemas import (
    NO_ID,
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
from demux.core.errors import ArgumentInvalid
from demux.core.settings.source import WrapperFraming
from demux.core.spark.map_in_arrow import map_in_arrow
from deserializer.decoders.payload_column import BAD_ROW, PayloadColumn, decide_column, to_messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})


def decode(
    frame: DataFrame,
    column: str,
    *,
    registry: Registry | None = None,
    subject: str | None = None,
    schema_id: str | int | None = None,
    schema: SchemaFile | None = None,
    message: str | None = None,
    framing: str | WrapperFraming = WrapperFraming.BARE,
    into: str | None = "message",
    quarantine: str = "_quarantine",
    rescued: str | None = None,
) -> DataFrame:
    """Return the frame with the payloads of a column decoded, for a batch or a stream; docs/decode.md has examples.

    The result has the frame's other columns, the message, and a column that is NULL where the row is good:
    STRUCT<cause: STRING, sentence: STRING, bytes: BINARY>. A NULL payload is a good row without a message. The columns
    are decided now: a schema that is registered later is a bad row with the cause UNKNOWN_SCHEMA.

    Args:
        frame: any frame; with Spark Connect too.
        column: the name of its BINARY column with the payloads.
        registry: URL of a Confluent-compatible registry, path or URI of a folder with `registry.yml`, or a mapping with
            the keys of the section `registry` of the settings (`url`, `username`, `password: secret:env/NAME`, …).
        subject: a subject of the registry; its versions become one set of columns, fitted by field number. Each row is
            decoded with the version that it names by `framing` or `schema_id`; where neither is given, the newest.
        schema_id: the column with each row's schema id, or the one id of all rows. Without a subject, the ids of a
            batch are found by a job of its own.
        schema: instead of a registry, the path of a `.proto` file, or a descriptor set as path or bytes.
        message: the full name of the message; None for the first of the file.
        framing: `bare`, or `confluent` where magic byte, id and message indexes are before each payload.
        into: name of a struct with the message's fields; None for a column for each field.
        quarantine: name of the column that says why a row has no message.
        rescued: name of a BINARY column for what payloads hold beyond the columns; None for no such column.

    Raises:
        ArgumentInvalid: the frame has no such column, or arguments contradict.
        SchemaUnknown: the registry has no such subject or id.
        SchemaInvalid: no schema can be used.
        RegistryUnavailable, RegistryRefused, SecretMissing, SettingsInvalid: the registry gives no answer.
    """
    payload = place_of_column(frame, column, "binary")
    framed = framing_of(framing)
    ids = place_of_column(frame, schema_id, *_INTEGERS) if isinstance(schema_id, str) else None
    if framed is WrapperFraming.CONFLUENT and schema_id is not None:
        raise ArgumentInvalid("The frames name the schema ids, and `schema_id` does too.", "Leave one of them out.")
    if schema is not None:
        if registry is not None or subject is not None or schema_id is not None:
            raise ArgumentInvalid("The argument `schema` goes with no registry, subject and id.", "Leave them out.")
        schemas: Schemas = {NO_ID: schema_of_file(schema, message)}
    else:
        schemas = _from_registry(frame, registry, subject, schema_id, framed, message)
    others = frozenset(name.lower() for at, name in enumerate(frame.columns) if at != payload)
    added = frozenset(name.lower() for name in (quarantine, rescued) if name is not None)
    decisions = decide_column(schemas, others | added if into is None else frozenset())
    is_shared = schema is not None or (ids is None and framed is WrapperFraming.BARE)
    source = PayloadColumn(payload, framed, decisions, ids, next(reversed(schemas)) if is_shared else None)
    made = [*source.message_columns(into), Column(quarantine, BAD_ROW)]
    if rescued is not None:
        made.append(Column(rescued, Primitive.BINARY))
    require_free((one.name for one in made), others)
    kept = [one for at, one in enumerate(frame.schema.fields) if at != payload]
    fields = type(frame.schema)([*kept, *spark_struct(Struct(tuple(made))).fields])
    return map_in_arrow(frame, to_messages(source, into, quarantine, rescued), fields)


def _from_registry(
    frame: DataFrame,
    registry: Registry | None,
    subject: str | None,
    schema_id: str | int | None,
    framing: WrapperFraming,
    message: str | None,
) -> Schemas:
    if registry is None:
        raise ArgumentInvalid(
            "Nothing says where the schemas are.", "Name a registry with a subject, or a file by `schema`."
        )
    if subject is not None:
        if isinstance(schema_id, int):
            raise ArgumentInvalid("A subject and one id for all rows are both named.", "Leave one of them out.")
        return schemas_of_subject(open_named_registry(registry), subject, message)
    if isinstance(schema_id, int):
        return schemas_of_ids(open_named_registry(registry), [schema_id], message)
    if framing is WrapperFraming.CONFLUENT or schema_id is None:
        raise ArgumentInvalid("The registry is named, and no subject.", "Name the subject of the payloads.")
    if frame.isStreaming:
        raise ArgumentInvalid("The schema ids of a stream are not known before it runs.", "Name the subject.")
    return schemas_of_ids(open_named_registry(registry), _ids_in(frame, schema_id), message)


def _ids_in(frame: DataFrame, column: str) -> Iterable[int]:
    """Return the distinct ids of a column, by a job; ids that no registry gives are left out."""
    rows = frame.select(frame[f"`{column}`"].cast("bigint")).distinct().collect()
    ids = {int(row[0]) for row in rows if row[0] is not None and row[0] > 0}
    if not ids:
        raise ArgumentInvalid(f"No row has a schema id in column {column!r}.", "Name the subject of the payloads.")
    return ids
