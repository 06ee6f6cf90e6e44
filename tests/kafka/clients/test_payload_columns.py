"""`demux.decode` and `demux.encode` beside Confluent's own serializer and a real registry, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from demux.api.payload_schemas import open_named_registry, schemas_of_subject
from demux.core.errors import SchemaUnknown
from demux.core.protobuf.encode.message_column import MessageColumn, to_payloads
from demux.core.protobuf.schema.message_selection import indexes_of_message
from demux.core.protobuf.schema.protoc import CompiledSchema
from demux.core.protobuf.wire.framing import frame_bytes
from demux.core.settings.source import WrapperFraming
from deserializer.decoders.payload_column import PayloadColumn, decide_column, to_messages
from tests.support.kafka.pipeline import classes
from tools.servers.registry import Registry

FRAMED = """
    syntax = "proto3";
    package column;
    message First { string a = 1; message Inner { string b = 1; repeated int64 list = 2; } }
    message Second { map<string, string> tags = 1; message Inner { string e = 1; } }
"""
CONTEXT = SerializationContext("column", MessageField.VALUE)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("column.First", {"a": "x"}),
        ("column.First.Inner", {"b": "y", "list": [1, -1]}),
        ("column.Second", {"tags": {"k": "v"}}),
        ("column.Second.Inner", {"e": "z"}),
    ],
)
def test_what_confluent_writes_is_decoded_and_what_is_encoded_confluent_reads(
    registry: Registry, message: str, fields: dict[str, object]
) -> None:
    cls = classes(FRAMED)(message)
    client = SchemaRegistryClient({"url": registry.url, "timeout": 30})
    # its own way asks the registry for associations, which this one has none of
    subject = {"subject.name.strategy": lambda *_: "column-value"}
    write = ProtobufSerializer(cls, client, subject)
    sent = [write(cls(**fields), CONTEXT), write(cls(), CONTEXT)]
    schemas = schemas_of_subject(open_named_registry(registry.url), "column-value", message)
    column = PayloadColumn(0, WrapperFraming.CONFLUENT, decide_column(schemas))
    batch = pa.RecordBatch.from_pydict({"value": pa.array(sent, pa.binary())})
    (decoded,) = to_messages(column, "message", "bad", None)(iter([batch]))
    assert decoded.column("bad").null_count == 2
    (newest,) = schemas.values()
    assert isinstance(newest, CompiledSchema)
    prefix = frame_bytes(newest.schema_id, indexes_of_message(newest.descriptor_set, message))
    target = MessageColumn((0,), True, newest.descriptor_set, message, prefix)
    (encoded,) = to_payloads(target, "value", "unwritten")(iter([decoded]))
    read = ProtobufDeserializer(cls, {"use.deprecated.format": False, **subject}, client)
    assert [read(data, CONTEXT) for data in encoded.column("value").to_pylist()] == [cls(**fields), cls()]


def test_a_subject_that_the_registry_lacks_is_unknown(registry: Registry) -> None:
    with pytest.raises(SchemaUnknown, match="no subject 'nobody-value'"):
        schemas_of_subject(open_named_registry(registry.url), "nobody-value", None)
