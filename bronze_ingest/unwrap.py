"""Records to bronze's own fields, a whole Arrow batch at a time; what cannot be unwrapped gets a cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bronze_ingest.envelope import column_at, extra_arrays, extra_columns
from demux.core.causes import Cause
from demux.core.columns.arrow import spread
from demux.core.columns.types import Struct
from demux.core.names import invalid_reason
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.envelope import Envelope, envelope_of
from demux.core.protobuf.wire.framing import HEADER
from demux.core.protobuf.wire.framing_batch import Frames, after_frames, frames_before, frames_in_headers
from demux.core.settings.settings import Settings
from demux.core.settings.source import PayloadFraming, WrapperFraming
from demux.core.tables import BRONZE

_MIN_ID, _MAX_ID = -(2**31), 2**31 - 1
_STAMPED = {"ingested_at", "batch_id"}

_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WrapperFormat:
    """How a record is wrapped, and which names are let through.

    Attributes:
        wrapper: the frame before it.
        payload: where the payload's schema id is.
        max_name_bytes: longest game name in UTF-8 bytes.
    """

    envelope: Envelope
    wrapper: WrapperFraming
    payload: PayloadFraming
    max_name_bytes: int


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """A batch of records taken apart; arrays as long as the batch, NULL where the record has no such part.

    Attributes:
        game_name: STRING.
        schema_id: INT.
        guid: STRING, the schema's GUID where the frame has one.
        indexes: STRING, the message indexes of the frame, such as `1,0`.
        payload: BINARY, exactly the bytes in the wrapper, without their frame.
        extra: the columns of `extra_columns`.
        causes: STRING, why the record is refused, NULL for a good one.
        sentences: STRING, the cause in words, NULL for a good one.
    """

    game_name: pa.Array
    schema_id: pa.Array
    guid: pa.Array
    indexes: pa.Array
    payload: pa.Array
    extra: list[pa.Array]
    causes: pa.Array
    sentences: pa.Array


def wrapper_format(settings: Settings) -> WrapperFormat:
    """Return the format that the settings describe; reads and compiles the envelope's file.

    Raises:
        SettingsInvalid: as for `envelope_of`.
    """
    framing = settings.framing
    return WrapperFormat(envelope_of(settings.wrapper), framing.wrapper, framing.payload, settings.games.max_name_bytes)


def bronze_columns(wrapper: WrapperFormat) -> Struct:
    """Return the columns of the bronze table: those of `BRONZE`, the envelope's other fields before `ingested_at`."""
    own = [column for column in BRONZE if column.name not in _STAMPED]
    stamped = [column for column in BRONZE if column.name in _STAMPED]
    return Struct((*own, *extra_columns(wrapper.envelope), *stamped))


def unwrap(values: pa.Array, headers: pa.Array, wrapper: WrapperFormat, malformed: pa.Array | None = None) -> Unwrapped:
    """Return the fields of every record.

    Args:
        values: BINARY; NULL is not a wrapper.
        headers: ARRAY<STRUCT<key: STRING, value: BINARY>>.
        malformed: STRING, what is wrong where a row is a piece of a file and no record.
    """
    envelope, refused = wrapper.envelope, _Refusals(len(values))
    if malformed is not None:
        pieces = [(row, malformed[row].as_py()) for row in _where(malformed.is_valid())]
        refused.refuse_each(pieces, Cause.MALFORMED_FILE, "{}")
    refused.refuse(_where(values.is_null()), Cause.MALFORMED_WRAPPER, "The record has no value.")
    columns = _decode_envelopes(_bare(values, wrapper.wrapper, refused), envelope, refused)
    game_name = _game_names(column_at(columns, envelope.game), wrapper, refused)
    own_id = pa.nulls(len(values), pa.int32())
    if envelope.schema_id is not None:
        own_id = _schema_ids(column_at(columns, envelope.schema_id), refused)
    payload = column_at(columns, envelope.payload)
    extra = extra_arrays(columns, envelope)
    match wrapper.payload:
        case PayloadFraming.FIELD:
            nothing = pa.nulls(len(values), pa.string())
            return Unwrapped(game_name, own_id, nothing, nothing, payload, extra, *refused.arrays())
        case PayloadFraming.CONFLUENT:
            payload = payload.fill_null(b"")
            frames = frames_before(payload)
            payload = after_frames(payload, frames.lengths)
            refused.refuse_each(frames.bad, Cause.MALFORMED_FRAME, "The payload has no frame: {}.")
        case PayloadFraming.HEADER:
            framed = _last_headers(headers)
            frames = frames_in_headers(framed)
            refused.refuse(_where(framed.is_null()), Cause.MALFORMED_FRAME, f"The record has no header {HEADER}.")
            refused.refuse_each(frames.bad, Cause.MALFORMED_FRAME, f"The header {HEADER} has no frame: {{}}.")
    schema_id = _reconcile_ids(own_id, frames, refused)
    return Unwrapped(game_name, schema_id, frames.guid, frames.indexes, payload, extra, *refused.arrays())


@dataclass(slots=True)
class _Refusals:
    """Which records are refused, and why; the first reason counts."""

    count: int
    reasons: dict[int, tuple[str, str]] = field(default_factory=dict)

    def refuse(self, rows: Iterable[int], cause: Cause, sentence: str) -> None:
        for row in rows:
            self.reasons.setdefault(row, (cause.value, sentence))

    def refuse_each(self, rows: Iterable[tuple[int, str]], cause: Cause, sentence: str) -> None:
        for row, reason in rows:
            self.reasons.setdefault(row, (cause.value, sentence.format(reason)))

    def good(self) -> _Rows:
        good = np.ones(self.count, dtype=bool)
        good[list(self.reasons)] = False
        return np.flatnonzero(good)

    def arrays(self) -> tuple[pa.Array, pa.Array]:
        if not self.reasons:
            return pa.nulls(self.count, pa.string()), pa.nulls(self.count, pa.string())
        both = [self.reasons.get(row, (None, None)) for row in range(self.count)]
        return pa.array([cause for cause, _ in both], pa.string()), pa.array([text for _, text in both], pa.string())


def _bare(values: pa.Array, framing: WrapperFraming, refused: _Refusals) -> pa.Array:
    match framing:
        case WrapperFraming.BARE:
            return values
        case WrapperFraming.CONFLUENT:
            # which message the frame names does not matter: the settings name it
            frames = frames_before(values)
            refused.refuse_each(frames.bad, Cause.MALFORMED_WRAPPER, "The record's value has no frame: {}.")
            return after_frames(values, frames.lengths)


def _decode_envelopes(values: pa.Array, envelope: Envelope, refused: _Refusals) -> list[pa.Array]:
    """Return the envelope's columns, NULL in the rows of refused records."""
    whole = refused.good()
    decoder = decoder_of(envelope.descriptor_set, envelope.message)
    decoded = decoder.decode(values if len(whole) == len(values) else values.take(pa.array(whole)))
    refused.refuse_each([(int(whole[row]), reason) for row, reason in decoded.bad], Cause.MALFORMED_WRAPPER, "{}")
    rows = whole[np.array(decoded.good, dtype=np.int64)]
    if np.array_equal(rows, np.arange(len(values))):
        return decoded.columns
    return [spread(column, rows, len(values)) for column in decoded.columns]


def _game_names(games: pa.Array, wrapper: WrapperFormat, refused: _Refusals) -> pa.Array:
    """Return the games as text; few differ, so each is looked at once."""
    no_game, named = wrapper.envelope.no_game, wrapper.envelope.game_names
    # an empty text has a sentence of its own
    absent = f"The game is {no_game} or absent." if no_game else invalid_reason("", wrapper.max_name_bytes)
    assert absent is not None
    encoded = games.dictionary_encode()
    names = [str(game) for game in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(names)).to_numpy()
    for code, name in enumerate((*names, no_game)):
        if name == no_game:
            reason: str | None = absent
        elif named is not None and name not in named:
            # of an open enum: digits, by which no game is called
            reason = f"The game is number {name}, which has no name in the envelope's enum."
        else:
            reason = invalid_reason(name, wrapper.max_name_bytes)
        if reason is not None:
            refused.refuse(np.flatnonzero(codes == code).tolist(), Cause.INVALID_GAME_NAME, reason)
    return pa.array(names, pa.string()).take(encoded.indices)


def _schema_ids(ids: pa.Array, refused: _Refusals) -> pa.Array:
    """Return the ids as INT; one that is no INT is refused."""
    if ids.type == pa.int32():
        return ids

    def limit(number: int) -> pa.Scalar:
        return pa.scalar(Decimal(number) if pa.types.is_decimal(ids.type) else number, ids.type)

    outside = pc.or_(pc.less(ids, limit(_MIN_ID)), pc.greater(ids, limit(_MAX_ID)))
    rows = _where(outside.fill_null(False))
    wrong = [(row, str(ids[row].as_py())) for row in rows]
    refused.refuse_each(wrong, Cause.MALFORMED_WRAPPER, "The schema id {} does not fit into 32 bits.")
    return (pc.if_else(outside, pa.scalar(None, ids.type), ids) if rows else ids).cast(pa.int32())


def _last_headers(headers: pa.Array) -> pa.Array:
    """Return the value (BINARY) of each record's last header `HEADER`."""
    pairs, counts = headers.flatten(), headers.value_lengths().fill_null(0).to_numpy()
    named = np.flatnonzero(pc.equal(pairs.field(0), HEADER).fill_null(False).to_numpy(zero_copy_only=False))
    last = np.full(len(headers), -1, dtype=np.int64)
    # in order: of several headers of a record the last one stays
    last[np.repeat(np.arange(len(headers)), counts)[named]] = named
    return pairs.field(1).take(pa.array(last, mask=last < 0))


def _reconcile_ids(own: pa.Array, frames: Frames, refused: _Refusals) -> pa.Array:
    """Return the frame's ids, and the wrapper's own where the frame has none; 0 means none in the wrapper.

    A GUID is not compared with the wrapper's id: only the registry knows which id it has.
    """
    own = pc.if_else(pc.equal(own, 0), None, own)
    differ = _where(pc.not_equal(own, frames.schema_id).fill_null(False))
    sentences = [(row, f"{own[row].as_py()}, the frame says {frames.schema_id[row].as_py()}") for row in differ]
    refused.refuse_each(sentences, Cause.SCHEMA_ID_CONFLICT, "The wrapper says schema id {}.")
    return pc.coalesce(frames.schema_id, own)


def _where(flags: pa.Array) -> list[int]:
    rows: list[int] = np.flatnonzero(flags.to_numpy(zero_copy_only=False)).tolist()
    return rows
