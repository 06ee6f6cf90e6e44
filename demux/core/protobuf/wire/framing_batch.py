"""The Confluent frames of a whole Arrow batch (`demux.core.protobuf.wire.framing` says what a frame is). Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from demux.core.protobuf.wire.framing import (
    ID_BYTES,
    MAX_ID,
    Frame,
    NotFramed,
    frame_before,
    frame_in_header,
    indexes_of,
)

# the indexes of a frame that is read in one go with its whole batch, their number included
_QUICK_BYTES = 8

Lengths = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of a batch; arrays as long as the batch, NULL where there is no frame or the frame has no such part.

    Attributes:
        schema_id: INT.
        guid: STRING, lower-case with hyphens.
        indexes: STRING, such as `1,0`.
        lengths: the frames' bytes, 0 where there is none.
        bad: position and why, for each value that has no frame; a NULL is not among them.
    """

    schema_id: pa.Array
    guid: pa.Array
    indexes: pa.Array
    lengths: Lengths
    bad: tuple[tuple[int, str], ...]


def frames_before(values: pa.Array) -> Frames:
    """Return the frames that the values (BINARY) begin with."""
    count, valid = len(values), values.is_valid().to_numpy(zero_copy_only=False)
    quick = _quick_frames(values, valid)
    ids = np.where(quick.has_frame, quick.ids, 0)
    texts = pa.array(quick.texts, pa.string()).take(pa.array(quick.text_at, mask=~quick.has_frame))
    lengths = np.where(quick.has_frame, quick.lengths, 0)
    slow = np.flatnonzero(valid & ~quick.has_frame)
    if not len(slow):
        return Frames(
            pa.array(ids, pa.int32(), mask=~quick.has_frame), pa.nulls(count, pa.string()), texts, lengths, ()
        )
    read, bad = _read_each(values, slow)
    guids: list[str | None] = [None] * count
    rare: list[str | None] = [None] * count
    no_id = ~quick.has_frame
    for position, frame in read.items():
        lengths[position], guids[position], rare[position] = frame.length, frame.guid, frame.indexes
        if frame.schema_id is not None:
            ids[position], no_id[position] = frame.schema_id, False
    indexes = pc.coalesce(texts, pa.array(rare, pa.string()))
    return Frames(pa.array(ids, pa.int32(), mask=no_id), pa.array(guids, pa.string()), indexes, lengths, tuple(bad))


def frames_in_headers(headers: pa.Array) -> Frames:
    """Return the frames that the values (BINARY) of header `HEADER` are; few differ, so each is read once."""
    encoded = headers.dictionary_encode()
    frames: list[Frame | None] = []
    reasons: dict[int, str] = {}
    for code, data in enumerate(encoded.dictionary.to_pylist()):
        try:
            frames.append(frame_in_header(data))
        except NotFramed as reason:
            frames.append(None)
            reasons[code] = str(reason)
    codes = encoded.indices
    bad = [] if not reasons else [(at, reasons[code]) for at, code in enumerate(codes.to_pylist()) if code in reasons]
    return Frames(
        pa.array([frame.schema_id if frame else None for frame in frames], pa.int32()).take(codes),
        pa.array([frame.guid if frame else None for frame in frames], pa.string()).take(codes),
        pa.array([frame.indexes if frame else None for frame in frames], pa.string()).take(codes),
        pa.array([frame.length if frame else 0 for frame in frames], pa.int64()).take(codes).fill_null(0).to_numpy(),
        tuple(bad),
    )


def after_frames(values: pa.Array, lengths: Lengths) -> pa.Array:
    """Return the values (BINARY) without their first bytes, as many as `lengths` says; a NULL stays NULL."""
    starts, ends, data = _parts(values)
    kept = np.ones(len(data), dtype=bool)
    kept[: starts[0] if len(starts) else 0] = False
    kept[ends[-1] if len(ends) else 0 :] = False
    for byte in range(int(lengths.max(initial=0))):
        kept[starts[lengths > byte] + byte] = False
    offsets = np.concatenate([[0], np.cumsum(ends - starts - lengths)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data[kept])]
    rest = pa.Array.from_buffers(pa.binary(), len(values), buffers)
    return pc.if_else(values.is_valid(), rest, None) if values.null_count else rest


@dataclass(frozen=True, slots=True)
class _BatchFrames:
    """The frames of a batch: arrays as long as the batch, whose values count only where `has_frame`."""

    has_frame: _Flags
    ids: Lengths
    lengths: Lengths
    texts: list[str]
    text_at: Lengths


def _quick_frames(values: pa.Array, valid: _Flags) -> _BatchFrames:
    """Read the frames with an id and, in `_QUICK_BYTES`, the indexes, all of them below 64."""
    starts, ends, data = _parts(values)
    sizes = np.where(valid, ends - starts, 0)
    room = sizes > 1 + ID_BYTES
    # a value too short for a frame is looked at nowhere: any place inside the data will do
    heads = np.where(room, starts, 0)
    ids = np.zeros(len(values), dtype=np.int64)
    for byte in range(1, 1 + ID_BYTES):
        ids = ids << 8 | data.take(heads + byte, mode="clip")
    first = heads + 1 + ID_BYTES
    number = data.take(first, mode="clip")
    # zigzag: an even byte is twice a number that is not negative
    width = number // 2 + 1
    has_frame = room & (data[heads] == 0) & (ids <= MAX_ID) & (number % 2 == 0) & (width <= _QUICK_BYTES)
    has_frame &= 1 + ID_BYTES + width <= sizes
    keys = number.astype(np.uint64)
    for byte in range(1, _QUICK_BYTES if bool((has_frame & (width > 1)).any()) else 1):
        index = np.where(width > byte, data.take(first + byte, mode="clip"), 0)
        has_frame &= (index % 2 == 0) & (index < 128)
        keys |= index.astype(np.uint64) << np.uint64(8 * byte)
    distinct, text_at = np.unique(keys * has_frame, return_inverse=True)
    texts = [_text_of_key(int(key)) for key in distinct]
    return _BatchFrames(
        has_frame, ids, 1 + ID_BYTES + width.astype(np.int64), texts, text_at.reshape(-1).astype(np.int64)
    )


def _text_of_key(key: int) -> str:
    data = key.to_bytes(_QUICK_BYTES, "little")
    return indexes_of(data, 0)[0]


def _read_each(values: pa.Array, positions: Lengths) -> tuple[dict[int, Frame], list[tuple[int, str]]]:
    read: dict[int, Frame] = {}
    bad: list[tuple[int, str]] = []
    for position, data in zip(positions.tolist(), values.take(pa.array(positions)).to_pylist(), strict=True):
        try:
            read[position] = frame_before(data)
        except NotFramed as reason:
            bad.append((position, str(reason)))
    return read, bad


def _parts(values: pa.Array) -> tuple[Lengths, Lengths, _Bytes]:
    """Return where each value starts and ends in the bytes of the whole array, and these bytes, one at least."""
    _, offsets, data = values.buffers()
    if offsets is None or not len(values):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    return bounds[:-1], bounds[1:], np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
