"""Canonical Protobuf JSON to the bytes of its message: the inverse of `reference_parser.json_text`."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from google.protobuf import json_format
from google.protobuf.any_pb2 import Any
from google.protobuf.descriptor_pool import DescriptorPool

from demux.core.protobuf.schema.descriptor_pool import message_class

_UNRESOLVED = {"@type", "value"}


class UnfitJson(Exception):
    """The text is no JSON of the message; the text says why, without a full stop."""


@dataclass(frozen=True, slots=True)
class JsonReader:
    """Reads JSON texts of messages of a pool."""

    pool: DescriptorPool

    def payload(self, full_name: str, text: str) -> bytes:
        """Return the message's bytes; map entries in order of key.

        Raises:
            UnfitJson: the text is no JSON of the message.
        """
        message = message_class(self.pool, full_name)()
        try:
            json_format.Parse(text, message, descriptor_pool=self.pool)
            return message.SerializeToString(deterministic=True)
        except (json_format.Error, AttributeError, TypeError, ValueError, RecursionError) as error:
            unresolved = _unresolved(text) if full_name == Any.DESCRIPTOR.full_name else None
            if unresolved is None:
                raise UnfitJson(str(error).rstrip(".")) from error
            return unresolved


def _unresolved(text: str) -> bytes | None:
    """Return an Any whose type is not in the pool, as `json_text` writes one; None for anything else."""
    try:
        members = json.loads(text)
        if not isinstance(members, dict) or set(members) != _UNRESOLVED:
            return None
        value = base64.b64decode(members["value"], validate=True)
        return Any(type_url=members["@type"], value=value).SerializeToString(deterministic=True)
    except (ValueError, TypeError, binascii.Error):
        return None
