"""Records whose wrapper or payload is framed: the frame names the schema, and no wrapper may say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from bronze_ingest.unwrap import Unwrapped, WrapperFormat, unwrap, wrapper_format
from demux.core.columns.arrow import arrow_type
from demux.core.settings.settings import Settings
from demux.core.settings.source import FramingSettings, PayloadFraming, WrapperFraming, WrapperSettings
from demux.core.tables import SOURCE_OPTIONAL
from producer.records import head, wrap_payload

HEADERS = next(arrow_type(column.type) for column in SOURCE_OPTIONAL if column.name == "headers")
GUID = "f3fb74ca-b1bd-4d35-a7c3-6e8ad3ba9538"
SCHEMA_ID_HEADER = "__value_schema_id"
NO_ID = b"\x0a\x05chess"

Headers = list[tuple[str | None, bytes | None]] | None


def of(wrapper: WrapperFraming, payload: PayloadFraming) -> WrapperFormat:
    return wrapper_format(Settings(framing=FramingSettings(wrapper=wrapper, payload=payload)))


FORMATS = {pair: of(*pair) for pair in product(WrapperFraming, PayloadFraming)}
FRAMED_WRAPPER = FORMATS[WrapperFraming.CONFLUENT, PayloadFraming.FIELD]
FRAMED_PAYLOAD = FORMATS[WrapperFraming.BARE, PayloadFraming.CONFLUENT]
FRAMED_BOTH = FORMATS[WrapperFraming.CONFLUENT, PayloadFraming.CONFLUENT]
IN_HEADER = FORMATS[WrapperFraming.BARE, PayloadFraming.HEADER]


def frame(which: int | str, *indexes: int) -> bytes:
    schema_id = SchemaId("PROTOBUF", None, None, list(indexes) or None)
    if isinstance(which, int):
        schema_id.id = which
        data: bytes = schema_id.id_to_bytes()
        return data
    with_guid: bytes = SchemaId("PROTOBUF", None, which, list(indexes) or None).guid_to_bytes()
    return with_guid


def taken_apart(
    wrapper: WrapperFormat, values: Sequence[bytes | None], headers: Sequence[Headers] | None = None
) -> Unwrapped:
    pairs = [
        None if one is None else [{"key": key, "value": value} for key, value in one]
        for one in headers or [None] * len(values)
    ]
    return unwrap(pa.array(values, pa.binary()), pa.array(pairs, HEADERS), wrapper)


def rows(found: Unwrapped) -> list[tuple[Any, ...]]:
    columns = (found.game_name, found.schema_id, found.guid, found.indexes, found.payload, found.causes)
    return list(zip(*(column.to_pylist() for column in (*columns, found.sentences)), strict=True))


def refusal(found: Unwrapped) -> tuple[str | None, str | None]:
    cause, sentence = rows(found)[0][-2:]
    return cause, sentence


def test_a_frame_before_the_wrapper_is_taken_off() -> None:
    record = wrap_payload(head("chess", 7), b"payload")
    found = taken_apart(FRAMED_WRAPPER, [frame(3, 0) + record, frame(GUID, 1, 0) + record, None])
    assert rows(found) == [
        ("chess", 7, None, None, b"payload", None, None),
        ("chess", 7, None, None, b"payload", None, None),
        (None, None, None, None, None, "MALFORMED_WRAPPER", "The record has no value."),
    ]


def test_a_wrapper_without_its_frame_is_refused() -> None:
    found = taken_apart(FRAMED_WRAPPER, [wrap_payload(head("chess", 7), b"payload"), b"", frame(3, 0) + b"\xff"])
    assert rows(found)[0][-2:] == (
        "MALFORMED_WRAPPER",
        "The record's value has no frame: it begins with 0x0a, not with 0x00 or 0x01.",
    )
    assert rows(found)[1][-2:] == ("MALFORMED_WRAPPER", "The record's value has no frame: it is empty.")
    assert rows(found)[2][-2] == "MALFORMED_WRAPPER"


@pytest.mark.parametrize("game", [head("chess", 9), head("chess", 0), NO_ID], ids=["the same", "zero", "none"])
def test_a_frame_before_the_payload_names_schema_and_message(game: bytes) -> None:
    found = taken_apart(FRAMED_PAYLOAD, [wrap_payload(game, frame(9, *at) + b"p") for at in ([0], [1, 0], [300])])
    assert rows(found) == [("chess", 9, None, text, b"p", None, None) for text in ("0", "1,0", "300")]


def test_a_framed_payload_may_be_empty() -> None:
    assert rows(taken_apart(FRAMED_PAYLOAD, [wrap_payload(NO_ID, frame(9, 0))])) == [
        ("chess", 9, None, "0", b"", None, None),
    ]


def test_a_guid_stands_beside_the_id_of_the_wrapper_which_only_the_registry_can_compare() -> None:
    payload = frame(GUID, 2) + b"p"
    assert rows(
        taken_apart(FRAMED_PAYLOAD, [wrap_payload(head("chess", 7), payload), wrap_payload(NO_ID, payload)])
    ) == [
        ("chess", 7, GUID, "2", b"p", None, None),
        ("chess", None, GUID, "2", b"p", None, None),
    ]


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (wrap_payload(head("chess", 7), b"p"), "The payload has no frame: it begins with 0x70, not with 0x00 or 0x01."),
        (wrap_payload(head("chess", 7), b""), "The payload has no frame: it is empty."),
        (head("chess", 7), "The payload has no frame: it is empty."),
        (
            wrap_payload(head("chess", 7), frame(7, 1, 0)[:-1]),
            "The payload has no frame: it ends after 7 bytes, within its message indexes.",
        ),
    ],
)
def test_a_payload_without_its_frame_is_refused(record: bytes, sentence: str) -> None:
    found = taken_apart(FRAMED_PAYLOAD, [record])
    assert refusal(found) == ("MALFORMED_FRAME", sentence)
    assert found.schema_id.to_pylist() == [7]


def test_a_wrapper_and_a_frame_that_name_two_schemas_are_refused_with_both() -> None:
    found = taken_apart(
        FRAMED_PAYLOAD, [wrap_payload(head("chess", 7), frame(9, 0)), wrap_payload(head("go", -7), frame(9, 0))]
    )
    assert rows(found)[0][-2:] == ("SCHEMA_ID_CONFLICT", "The wrapper says schema id 7, the frame says 9.")
    assert rows(found)[1][-2:] == ("SCHEMA_ID_CONFLICT", "The wrapper says schema id -7, the frame says 9.")


def test_the_first_thing_that_is_wrong_is_told() -> None:
    found = taken_apart(
        FRAMED_PAYLOAD, [wrap_payload(head("", 7), b"no frame"), wrap_payload(head("", 7), frame(9, 0))]
    )
    assert found.causes.to_pylist() == ["INVALID_GAME_NAME", "INVALID_GAME_NAME"]


def test_both_may_be_framed() -> None:
    record = frame(1, 0) + wrap_payload(NO_ID, frame(9, 1, 0) + b"p")
    assert rows(taken_apart(FRAMED_BOTH, [record])) == [("chess", 9, None, "1,0", b"p", None, None)]


def test_the_last_header_of_the_name_decides() -> None:
    record = wrap_payload(NO_ID, b"p")
    headers: list[Headers] = [
        [("other", b"\x00"), (SCHEMA_ID_HEADER, frame(9, 0))],
        [(SCHEMA_ID_HEADER, frame(9, 0)), ("other", b"x"), (SCHEMA_ID_HEADER, frame(GUID, 1, 0))],
        [(None, None), (SCHEMA_ID_HEADER, frame(8)), (SCHEMA_ID_HEADER + "2", b"x")],
    ]
    assert rows(taken_apart(IN_HEADER, [record] * 3, headers)) == [
        ("chess", 9, None, "0", b"p", None, None),
        ("chess", None, GUID, "1,0", b"p", None, None),
        ("chess", 8, None, None, b"p", None, None),
    ]


@pytest.mark.parametrize(
    ("headers", "cause", "sentence"),
    [
        (None, "MALFORMED_FRAME", "The record has no header __value_schema_id."),
        ([], "MALFORMED_FRAME", "The record has no header __value_schema_id."),
        ([("other", b"\x00")], "MALFORMED_FRAME", "The record has no header __value_schema_id."),
        ([(SCHEMA_ID_HEADER, None)], "MALFORMED_FRAME", "The record has no header __value_schema_id."),
        ([(SCHEMA_ID_HEADER, b"")], "MALFORMED_FRAME", "The header __value_schema_id has no frame: it is empty."),
        (
            [(SCHEMA_ID_HEADER, b"7")],
            "MALFORMED_FRAME",
            "The header __value_schema_id has no frame: it begins with 0x37, not with 0x00 or 0x01.",
        ),
        ([(SCHEMA_ID_HEADER, frame(9, 0))], "SCHEMA_ID_CONFLICT", "The wrapper says schema id 7, the frame says 9."),
        ([(SCHEMA_ID_HEADER, frame(7, 0))], None, None),
    ],
)
def test_a_header_that_does_not_name_the_schema_is_refused(
    headers: Headers, cause: str | None, sentence: str | None
) -> None:
    good: Headers = [(SCHEMA_ID_HEADER, frame(7, 0))]
    found = taken_apart(IN_HEADER, [wrap_payload(head("chess", 7), b"p")] * 3, [headers, good, headers])
    assert [row[-2:] for row in rows(found)] == [(cause, sentence), (None, None), (cause, sentence)]


def test_an_envelope_without_a_schema_id_needs_none_where_the_payload_is_framed() -> None:
    wrapper = wrapper_format(
        Settings(
            wrapper=WrapperSettings(schema_id_field=None),
            framing=FramingSettings(payload=PayloadFraming.CONFLUENT),
        )
    )
    found = taken_apart(wrapper, [wrap_payload(head("chess", 7), frame(9, 0) + b"p")])
    assert rows(found) == [("chess", 9, None, "0", b"p", None, None)]
    assert [one.to_pylist() for one in found.extra] == [[7]]


@pytest.mark.parametrize("which", [7, GUID])
def test_a_record_cut_off_at_any_byte_is_refused_and_never_an_error(which: int | str) -> None:
    record = frame(1, 0) + wrap_payload(head("chess", 7), frame(which, 1, 0))
    cut = [record[:end] for end in range(len(record))]
    found = taken_apart(FRAMED_BOTH, [*cut, record])
    assert found.causes.to_pylist()[-1] is None
    # a wrapper that ends between two fields is one: without a name, or without a payload
    assert set(found.causes.to_pylist()[:-1]) == {"MALFORMED_WRAPPER", "INVALID_GAME_NAME", "MALFORMED_FRAME"}


parts = st.sampled_from(
    [b"", b"\x00", frame(1, 0), frame(7, 1, 0), frame(GUID, 0), NO_ID, head("chess", 7), head("", 7), b"\x1a\x08"]
)
values = st.none() | st.builds(lambda parts, rest: b"".join(parts) + rest, st.lists(parts, max_size=4), st.binary())
pairs = st.tuples(st.sampled_from([None, "other", SCHEMA_ID_HEADER]), st.none() | parts | st.binary(max_size=24))
headers = st.none() | st.lists(pairs, max_size=3)


@given(st.sampled_from(list(FORMATS.values())), st.lists(st.tuples(values, headers), max_size=10))
def test_any_bytes_are_taken_apart_alike_whatever_stands_beside_them(
    wrapper: WrapperFormat, some: list[tuple[bytes | None, Headers]]
) -> None:
    together = rows(taken_apart(wrapper, [value for value, _ in some], [one for _, one in some]))
    assert together == [rows(taken_apart(wrapper, [value], [one]))[0] for value, one in some]
    assert all((cause is None) == (sentence is None) for *_, cause, sentence in together)


@given(
    st.sampled_from(list(FORMATS)),
    st.lists(st.tuples(st.integers(1, 2**31 - 1), st.lists(st.integers(0, 99), min_size=1, max_size=4), st.binary())),
)
def test_what_was_wrapped_and_framed_comes_back(
    framing: tuple[WrapperFraming, PayloadFraming], sent: list[tuple[int, list[int], bytes]]
) -> None:
    records: list[bytes] = []
    described: list[Headers] = []
    for schema_id, indexes, payload in sent:
        framed = frame(schema_id, *indexes)
        inside = framed + payload if framing[1] is PayloadFraming.CONFLUENT else payload
        outside = frame(1, 0) if framing[0] is WrapperFraming.CONFLUENT else b""
        records.append(outside + wrap_payload(head("chess", schema_id), inside))
        described.append([(SCHEMA_ID_HEADER, framed)])
    says_where = framing[1] is not PayloadFraming.FIELD
    expected = [
        ("chess", schema_id, None, ",".join(map(str, indexes)) if says_where else None, payload, None, None)
        for schema_id, indexes, payload in sent
    ]
    assert rows(taken_apart(FORMATS[framing], records, described)) == expected
