"""Which decoder reads a micro-batch: both give the same rows, and not every message suits both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame
from typing_extensions import assert_never

from demux.core.columns.spark import spark_struct
from demux.core.errors import DecoderUnsuited, RuntimeMissing
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.column_mapping import FieldMapping, JsonText, Message
from demux.core.settings.settings import Decoder
from demux.core.spark.map_in_arrow import map_in_arrow
from demux.core.tables import SILVER_RESERVED
from deserializer.decoders.arrow import silver_columns, to_silver
from deserializer.decoders.from_protobuf_functions import takes_bytes
from deserializer.decoders.schema_decision import Decisions, WriterSchema

# spark plans the columns of all writers of a batch one by one; beyond this it takes longer than the rows
MAX_COLUMNS = 1_000


class Unsuited(Enum):
    """Why `from_protobuf` cannot read a message; docs/columns.md has each."""

    NO_FIELDS = "has no fields"
    GROUP = "is a group"
    JSON_TEXT = "becomes JSON text"
    TOO_WIDE = f"columns in one plan, the limit is {MAX_COLUMNS}"


class RowDecoder(Protocol):
    """Turns the bronze rows of a micro-batch into rows of the game's table."""

    def rows(self, frame: DataFrame, decisions: Decisions) -> DataFrame:
        """Return every row of a batch in the columns of `silver_columns`.

        Args:
            frame: the columns of `deserializer.decoders.arrow.INPUT`.
            decisions: what to do with each schema ref of the batch.
        """


@dataclass(frozen=True, slots=True)
class Arrow:
    """`ptars` in Arrow batches, in Spark's Python workers; suits every message."""

    def rows(self, frame: DataFrame, decisions: Decisions) -> DataFrame:
        """Return every row of a batch in the columns of `silver_columns`."""
        return map_in_arrow(frame, to_silver(decisions), spark_struct(silver_columns(decisions.columns)))


ARROW = Arrow()


@dataclass(frozen=True, slots=True)
class FromProtobuf:
    """Spark's own `from_protobuf`.

    Attributes:
        descriptors: absolute path of the folder for descriptor files; None where Spark needs no files (3.5).
    """

    descriptors: Path | None

    def rows(self, frame: DataFrame, decisions: Decisions) -> DataFrame:
        """Return every row of a batch in the columns of `silver_columns`; the writers must be suited."""
        # imports pandas, which takes longer than a small command
        from deserializer.decoders.from_protobuf import native_rows

        return native_rows(frame, decisions, self.descriptors)


def choose(setting: Decoder, native: FromProtobuf | RuntimeMissing, decisions: Decisions) -> RowDecoder:
    """Return the decoder of a batch.

    Args:
        setting: what the user asked for.
        native: Spark's own decoder, or why it is not to be had.
        decisions: what to do with each schema ref of the batch.

    Raises:
        RuntimeMissing: `from_protobuf` was asked for and is not to be had.
        DecoderUnsuited: `from_protobuf` was asked for and cannot read one of the batch's messages.
    """
    writers = decisions.writers.values()
    match setting:
        case Decoder.ARROW | Decoder.AUTO:
            # it suits every message and is the faster one (docs/decisions/0006)
            return ARROW
        case Decoder.FROM_PROTOBUF:
            if isinstance(native, RuntimeMissing):
                raise native
            if reason := unsuited_reason(writers):
                raise DecoderUnsuited(
                    f"from_protobuf cannot read {reason}.", "Set `decoder: auto`, or `decoder: arrow`.", reason=reason
                )
            return native if writers else ARROW
        case _:
            assert_never(setting)


def native_decoder(has_from_protobuf: bool, root: str) -> FromProtobuf | RuntimeMissing:
    """Return Spark's own decoder, or why it is not to be had.

    Args:
        has_from_protobuf: whether the function is on the class path (`session.has_protobuf_functions`).
        root: path or URI of the root, which every executor can read.
    """
    if not has_from_protobuf:
        return RuntimeMissing(
            "Spark's from_protobuf is not on the class path.",
            "Name the package org.apache.spark:spark-protobuf of your Spark in spark.packages, or set `decoder: auto`.",
        )
    if takes_bytes():
        return FromProtobuf(None)
    parts = urlsplit(root)
    if parts.scheme in {"", "file"}:
        path = unquote(parts.path) if parts.scheme else root
        return FromProtobuf(Path(path).absolute() / "control" / "descriptors")
    return RuntimeMissing(
        f"Before Spark 3.5, from_protobuf reads its descriptor from a local path, and the root is {root}.",
        "Mount the root and name it by its path, or set `decoder: auto`.",
        root=root,
    )


def unsuited_reason(writers: Iterable[WriterSchema]) -> str | None:
    """Return what `from_protobuf` cannot read of these messages, or None where it reads them all."""
    columns = 0
    for writer in writers:
        shape = decoder_of(writer.descriptor_set, writer.message, SILVER_RESERVED).shape
        if not shape.fields:
            return f"schema {writer.schema_id}: {writer.message} {Unsuited.NO_FIELDS.value}"
        for path, field in _fields(shape, ""):
            if field.delimited:
                return f"schema {writer.schema_id}: field {path} {Unsuited.GROUP.value}"
            if isinstance(field.value, JsonText):
                return f"schema {writer.schema_id}: field {path} {Unsuited.JSON_TEXT.value}"
            columns += 1
    return f"{columns} {Unsuited.TOO_WIDE.value}" if columns > MAX_COLUMNS else None


def _fields(message: Message, prefix: str) -> Iterator[tuple[str, FieldMapping]]:
    for field in message.fields:
        yield f"{prefix}{field.name}", field
        if isinstance(field.value, Message):
            yield from _fields(field.value, f"{prefix}{field.name}.")
