"""Schemas in serialized form: base64 of a `FileDescriptorProto`, as some clients register them. Pure."""

from __future__ import annotations

import base64
import binascii
import re

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

# `.proto` text that says anything has blanks, quotes or semicolons, which base64 has not
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")


def descriptor_of(text: str) -> FileDescriptorProto | None:
    """Return the file that a schema's text is the serialized form of; None for `.proto` text."""
    if not _BASE64.fullmatch(text):
        return None
    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text))
    except (binascii.Error, DecodeError):
        return None
    # a few letters may be base64 of something, but a file that declares nothing is of no use
    return file if file.name or file.message_type or file.enum_type or file.extension else None
