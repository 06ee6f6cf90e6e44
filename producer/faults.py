"""The faults that the producer can make, and what each does to a good event. Pure."""

from __future__ import annotations

from enum import Enum

from demux.core.causes import Cause
from producer.records import head, wrap_payload


class Fault(Enum):
    """A kind of fault; the value names it in reports and options."""

    NOT_A_WRAPPER = "not-a-wrapper"
    TRUNCATED_WRAPPER = "truncated-wrapper"
    NULL_VALUE = "null-value"
    EMPTY_GAME_NAME = "empty-game-name"
    LONG_GAME_NAME = "long-game-name"
    CONTROL_CHARACTERS = "control-characters"
    UNKNOWN_SCHEMA_ID = "unknown-schema-id"
    ZERO_SCHEMA_ID = "zero-schema-id"
    NEGATIVE_SCHEMA_ID = "negative-schema-id"
    TRUNCATED_PAYLOAD = "truncated-payload"
    WRONG_WIRE_TYPE = "wrong-wire-type"
    INVALID_UTF8 = "invalid-utf8"
    TIMESTAMP_OUT_OF_RANGE = "timestamp-out-of-range"
    EMPTY_PAYLOAD = "empty-payload"


_CAUSES = {
    Fault.NOT_A_WRAPPER: Cause.MALFORMED_WRAPPER,
    Fault.TRUNCATED_WRAPPER: Cause.MALFORMED_WRAPPER,
    Fault.NULL_VALUE: Cause.MALFORMED_WRAPPER,
    Fault.EMPTY_GAME_NAME: Cause.INVALID_GAME_NAME,
    Fault.LONG_GAME_NAME: Cause.INVALID_GAME_NAME,
    Fault.CONTROL_CHARACTERS: Cause.INVALID_GAME_NAME,
    Fault.UNKNOWN_SCHEMA_ID: Cause.UNKNOWN_SCHEMA,
    Fault.ZERO_SCHEMA_ID: Cause.UNKNOWN_SCHEMA,
    Fault.NEGATIVE_SCHEMA_ID: Cause.UNKNOWN_SCHEMA,
    Fault.TRUNCATED_PAYLOAD: Cause.MALFORMED_PAYLOAD,
    Fault.WRONG_WIRE_TYPE: Cause.MALFORMED_PAYLOAD,
    Fault.INVALID_UTF8: Cause.MALFORMED_PAYLOAD,
    Fault.TIMESTAMP_OUT_OF_RANGE: Cause.MALFORMED_PAYLOAD,
}
# wire type 7 and field number 0 do not exist
_NEVER_A_TAG = b"\x07"
_USER_NAME_AS_VARINT = b"\x10\x01"
_USER_NAME_NOT_UTF8 = b"\x12\x02\xff\xfe"
# Timestamp{seconds: 2^62}
_YEAR_146_BILLION = b"\x1a\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"
_UNKNOWN_ID = 2_000_000_000


def cause_of(fault: Fault) -> Cause | None:
    """Return the cause that quarantine must show; None for an odd but valid event."""
    return _CAUSES.get(fault)


def spoil(fault: Fault, game_name: str, schema_id: int, payload: bytes, word: int) -> bytes | None:
    """Return the wrapper bytes of a good event after the fault; None is a record without a value.

    Args:
        word: 64 random bits for what the fault leaves open.
    """
    match fault:
        case Fault.NOT_A_WRAPPER:
            return _NEVER_A_TAG + word.to_bytes(8, "big")
        case Fault.TRUNCATED_WRAPPER:
            return wrap_payload(head(game_name, schema_id), payload)[: -1 - word % len(payload)]
        case Fault.NULL_VALUE:
            return None
        case Fault.EMPTY_GAME_NAME | Fault.LONG_GAME_NAME | Fault.CONTROL_CHARACTERS:
            return wrap_payload(head(_bad_name(fault, game_name), schema_id), payload)
        case Fault.UNKNOWN_SCHEMA_ID | Fault.ZERO_SCHEMA_ID | Fault.NEGATIVE_SCHEMA_ID:
            return wrap_payload(head(game_name, _bad_id(fault, word)), payload)
        case _:
            return wrap_payload(head(game_name, schema_id), _bad_payload(fault, payload, word))


def _bad_name(fault: Fault, game_name: str) -> str:
    match fault:
        case Fault.EMPTY_GAME_NAME:
            return ""
        case Fault.LONG_GAME_NAME:
            return (game_name * 300)[:300]
        case _:
            return f"{game_name}\n\x07"


def _bad_id(fault: Fault, word: int) -> int:
    match fault:
        case Fault.UNKNOWN_SCHEMA_ID:
            return _UNKNOWN_ID + word % 1000
        case Fault.ZERO_SCHEMA_ID:
            return 0
        case _:
            return -1 - word % 1000


def _bad_payload(fault: Fault, payload: bytes, word: int) -> bytes:
    match fault:
        case Fault.TRUNCATED_PAYLOAD:
            # a cut inside the first field, the game name, can never look like the end of a message
            return payload[: 2 + word % payload[1]]
        case Fault.WRONG_WIRE_TYPE:
            return payload + _USER_NAME_AS_VARINT
        case Fault.INVALID_UTF8:
            return payload + _USER_NAME_NOT_UTF8
        case Fault.TIMESTAMP_OUT_OF_RANGE:
            return payload + _YEAR_146_BILLION
        case _:
            return b""
