"""Wrapper bytes to the wrapper's fields, a whole Arrow batch at a time; what is no wrapper gets a cause."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from demux.causes import Cause
from demux.names import invalid_reason
from demux.protobuf.decoder import decoder_of


@dataclass(frozen=True, slots=True)
class WrapperFormat:
    """How a record is wrapped, and which names are let through.

    Attributes:
        descriptor_set: serialized `FileDescriptorSet` of the wrapper.
        message: the wrapper's full name; its fields are game_name, schema_id and payload.
        max_name_bytes: longest game name in UTF-8 bytes.
    """

    descriptor_set: bytes
    message: str
    max_name_bytes: int


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A batch of records taken apart; arrays as long as the batch, NULL where the record has no such field.

    Attributes:
        game_name: STRING.
        schema_id: INT.
        payload: BINARY, exactly the bytes in the wrapper.
        causes: why the record is refused, None for a good one.
        sentences: the cause in words, None for a good one.
    """

    game_name: pa.Array
    schema_id: pa.Array
    payload: pa.Array
    causes: list[str | None]
    sentences: list[str | None]


def unwrap(records: pa.Array, wrapper: WrapperFormat) -> Unwrapped:
    """Return the fields of every record (BINARY; NULL is not a wrapper)."""
    causes: list[str | None] = [None] * len(records)
    sentences: list[str | None] = [None] * len(records)

    def refuse(position: int, cause: Cause, sentence: str) -> None:
        causes[position], sentences[position] = cause.value, sentence

    values = records.to_pylist()
    decoder = decoder_of(wrapper.descriptor_set, wrapper.message)
    decoded = decoder.decode([b"" if value is None else value for value in values])
    for position, sentence in decoded.bad:
        refuse(position, Cause.MALFORMED_WRAPPER, sentence)
    for position, value in enumerate(values):
        if value is None:
            refuse(position, Cause.MALFORMED_WRAPPER, "The record has no value.")
    index = {column.name: at for at, column in enumerate(decoder.columns)}
    good = pa.array(decoded.good, pa.int64())
    fields = [
        _spread(decoded.columns[index[name]], good, len(records)) for name in ("game_name", "schema_id", "payload")
    ]
    reasons: dict[str, str | None] = {}
    for position, name in enumerate(fields[0].to_pylist()):
        if causes[position] is not None:
            continue
        name = name or ""
        if name not in reasons:
            reasons[name] = invalid_reason(name, wrapper.max_name_bytes)
        reason = reasons[name]
        if reason is not None:
            refuse(position, Cause.INVALID_GAME_NAME, reason)
    return Unwrapped(fields[0], fields[1], fields[2], causes, sentences)


def _spread(column: pa.Array, positions: pa.Array, length: int) -> pa.Array:
    """Return an array of `length` with the column's values at their positions and NULL elsewhere."""
    if len(positions) == length and positions.equals(pa.array(range(length), pa.int64())):
        return column
    places: list[int | None] = [None] * length
    for row, position in enumerate(positions.to_pylist()):
        places[position] = row
    return column.take(pa.array(places, pa.int64()))
