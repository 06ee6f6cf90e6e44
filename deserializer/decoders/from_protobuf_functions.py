"""Spark's `from_protobuf` and `to_protobuf` for a lowered descriptor, on every Spark that has them."""

from __future__ import annotations

import hashlib
import inspect
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column

from demux.core.protobuf.decode.lowered_descriptor import ROOT


@dataclass(frozen=True, slots=True)
class Functions:
    """Both directions between a binary column and a struct column."""

    # what does not parse reads as NULL, or as a struct of NULLs before spark 3.5.1
    read: Callable[[Column], Column]
    write: Callable[[Column], Column]


def takes_bytes() -> bool:
    """Return whether the functions take the descriptor itself (Spark 3.5); before, they take the path of a file."""
    from pyspark.sql.protobuf.functions import from_protobuf

    return "binaryDescriptorSet" in inspect.signature(from_protobuf).parameters


def functions_of(descriptor: bytes, folder: Path | None) -> Functions:
    """Return the functions for the descriptor set's message `ROOT`.

    With a folder, writes the set into it, named by its content; a second call writes nothing.
    """
    from pyspark.sql.protobuf.functions import from_protobuf, to_protobuf

    # its name and type differ between the versions of pyspark
    source: dict[str, Any] = {"binaryDescriptorSet": descriptor}
    if folder is not None:
        source = {"descFilePath": str(_file(descriptor, folder))}
    return Functions(
        read=lambda column: from_protobuf(column, ROOT, options={"mode": "PERMISSIVE"}, **source),
        write=lambda column: to_protobuf(column, ROOT, **source),
    )


def _file(content: bytes, folder: Path) -> Path:
    path = folder / f"{hashlib.sha256(content).hexdigest()}.desc"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        # executors may run as another user
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    return path
