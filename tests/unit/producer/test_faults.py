from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import DecodeError, Message

from demux.core.causes import Cause
from demux.core.names import MAX_NAME_BYTES, invalid_reason
from producer.events import EventWriter, payloads, random_words
from producer.faults import Fault, cause_of, spoil

NOW_US = 1_767_323_045_000_000
WORDS = random_words(7, 0, 300)
IDS = {101, 102, 103}


@pytest.fixture(scope="module")
def good(writer: Callable[[int, int], EventWriter]) -> tuple[EventWriter, list[bytes]]:
    chess = writer(0, 3)
    return chess, payloads(chess, WORDS, NOW_US)


def verdict(value: bytes | None, wrapper_class: type[Message], event_class: type[Message]) -> Cause | None:
    """What google.protobuf and the rules for names say of a record."""
    try:
        if value is None:
            return Cause.MALFORMED_WRAPPER
        wrapper: Any = wrapper_class.FromString(value)
    except DecodeError:
        return Cause.MALFORMED_WRAPPER
    if invalid_reason(wrapper.game_name, MAX_NAME_BYTES):
        return Cause.INVALID_GAME_NAME
    if wrapper.schema_id not in IDS:
        return Cause.UNKNOWN_SCHEMA
    try:
        event: Any = event_class.FromString(wrapper.payload)
    except DecodeError:
        return Cause.MALFORMED_PAYLOAD
    # a known field with a wire type that is not its own is parsed as an unknown one
    without_unknown = event_class.FromString(wrapper.payload)
    without_unknown.DiscardUnknownFields()
    lost = event.ByteSize() != without_unknown.ByteSize()
    return Cause.MALFORMED_PAYLOAD if lost or event.event_timestamp.seconds > 253_402_300_799 else None


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_leads_to_its_cause_whatever_the_random_bits(
    fault: Fault, good: tuple[EventWriter, list[bytes]], wrapper_class: type[Message]
) -> None:
    chess, events = good
    details = WORDS[:, 7].tolist()
    values = [spoil(fault, "chess", 101, event, word) for event, word in zip(events, details, strict=True)]
    assert {verdict(value, wrapper_class, chess.message) for value in values} == {cause_of(fault)}


def test_a_good_event_has_no_cause(good: tuple[EventWriter, list[bytes]], wrapper_class: type[Message]) -> None:
    chess, events = good
    values = [wrapper_class(game_name="chess", schema_id=101, payload=event).SerializeToString() for event in events]
    assert {verdict(value, wrapper_class, chess.message) for value in values} == {None}


def test_only_the_empty_payload_is_valid() -> None:
    assert [fault for fault in Fault if cause_of(fault) is None] == [Fault.EMPTY_PAYLOAD]


def test_a_truncated_wrapper_is_cut_somewhere_in_its_payload(good: tuple[EventWriter, list[bytes]]) -> None:
    _, events = good
    lengths = {len(spoil(Fault.TRUNCATED_WRAPPER, "chess", 101, events[0], word) or b"") for word in range(1000)}
    assert len(lengths) == len(events[0])
