"""The versions of the corpus as schemas to register. Free of Spark.

A schema is the `.proto` text that a package brings beside its module; where there is none, and for what never was in a
package, the text is written from the descriptor, or the schema is registered in serialized form.
"""

from __future__ import annotations

import base64
from pathlib import PurePosixPath

from demux.core.registry.protocol import ImportedFile, NewSchema
from tests.corpus.installed import TYPES, installed_text, module_of
from tests.corpus.versions import Version
from tests.support.data.proto_text import proto_text

# hundreds of messages in one file, extensions of Google's options, and features that no text of ours has
SERIALIZED = ("NanoPBOptions", "google.protobuf.FileDescriptorProto", "perfetto.protos.TraceConfig")


def schema_of(version: Version, subject: str) -> NewSchema:
    """The version as a schema of this subject; its message is named."""
    references = tuple(
        ImportedFile(file.name, installed_text(module_of(file.name)) or proto_text(file))
        for file in version.files[:-1]
        if not file.name.startswith("google/protobuf/")
    )
    return NewSchema(
        subject, text_of(version), f"corpus/{PurePosixPath(version.file.name).name}", references, version.message
    )


def text_of(version: Version) -> str:
    """The text of the version's own file."""
    if version.message in SERIALIZED:
        return base64.b64encode(version.file.SerializeToString()).decode()
    brought = installed_text(TYPES[version.message]) if version.number == 2 else None
    return brought or proto_text(version.file)
