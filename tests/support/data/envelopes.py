"""Another team's envelope, with everything that an envelope may hold. Free of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from bronze_ingest.unwrap import WrapperFormat, wrapper_format
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.settings.settings import Settings
from demux.core.settings.source import WrapperSettings

RICH = """
    syntax = "proto3";
    package acme;
    import "google/protobuf/timestamp.proto";
    enum Title { TITLE_NONE = 0; CHESS = 1; GO = 2; }
    message Registry { int64 schema = 1; }
    message Header {
      Title title = 1; string region = 2; Registry registry = 3; message Empty {} Empty empty = 4; string Region = 5;
    }
    message Body { bytes bytes = 1; }
    message Envelope {
      Body body = 9;
      Header header = 1;
      google.protobuf.Timestamp sent_at = 2;
      map<string, Registry> labels = 3;
      repeated Header hops = 4;
      oneof source { string device = 5; uint64 account = 6; }
      int32 Sent_At = 7;
      optional double score = 8;
    }
"""
RICH_FIELDS = {
    "message": "acme.Envelope",
    "game_field": "header.title",
    "schema_id_field": "header.registry.schema",
    "payload_field": "body.bytes",
}


def wrapper_of(folder: Path, text: str = RICH, **fields: Any) -> WrapperFormat:
    """The format of records in the first message of this file, or in the one that the fields name."""
    (folder / "envelope.proto").write_text(text)
    return wrapper_format(Settings(wrapper=WrapperSettings(proto=str(folder / "envelope.proto"), **fields)))


def message_of(wrapper: WrapperFormat) -> Any:
    """The class of the envelope's message."""
    files = FileDescriptorSet.FromString(wrapper.envelope.descriptor_set)
    return message_class(pool_of(files), wrapper.envelope.message)
