"""Whether a field is repeated or required: protobuf 6.31 warns of `label`, and 5.29 has nothing else."""

from __future__ import annotations

from operator import attrgetter

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

# newer stubs do not have it
_label = attrgetter("label")
# the class itself does not say which properties its fields have
_IS_NEW = hasattr(FileDescriptorProto.DESCRIPTOR.fields_by_name["name"], "is_repeated")


def is_repeated(field: FieldDescriptor) -> bool:
    """Return whether the field has any number of values."""
    return field.is_repeated if _IS_NEW else bool(_label(field) == FieldDescriptor.LABEL_REPEATED)


def is_required(field: FieldDescriptor) -> bool:
    """Return whether a message without the field is invalid."""
    return field.is_required if _IS_NEW else bool(_label(field) == FieldDescriptor.LABEL_REQUIRED)
