"""Records to the wrapper's fields: nothing is lost, nothing is changed, and what is no wrapper says why."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from bronze_ingest.unwrap import Unwrapped, WrapperFormat, unwrap, wrapper_format
from demux.core.causes import Cause
from demux.core.columns.arrow import arrow_type
from demux.core.names import MAX_NAME_BYTES, invalid_reason
from demux.core.protobuf.envelope import envelope_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.settings.games import GamesSettings
from demux.core.settings.settings import Settings
from demux.core.settings.source import WrapperSettings
from demux.core.tables import SOURCE_OPTIONAL

COMPILED = envelope_of(WrapperSettings())
FORMAT = wrapper_format(Settings())
HEADERS = next(arrow_type(column.type) for column in SOURCE_OPTIONAL if column.name == "headers")
WRAPPER = message_class(pool_of(FileDescriptorSet.FromString(COMPILED.descriptor_set)), COMPILED.message)

MALFORMED, BAD_NAME = Cause.MALFORMED_WRAPPER.value, Cause.INVALID_GAME_NAME.value


def wrapped(game_name: str | None = "chess", schema_id: int | None = 1, payload: bytes | None = b"p") -> bytes:
    fields = {"game_name": game_name, "schema_id": schema_id, "payload": payload}
    return WRAPPER(**{name: value for name, value in fields.items() if value is not None}).SerializeToString()


def taken_apart(*records: bytes | None, wrapper: WrapperFormat = FORMAT) -> Unwrapped:
    return unwrap(pa.array(records, pa.binary()), pa.nulls(len(records), HEADERS), wrapper)


def causes(unwrapped: Unwrapped) -> list[str | None]:
    found: list[str | None] = unwrapped.causes.to_pylist()
    return found


def sentences(unwrapped: Unwrapped) -> list[str | None]:
    found: list[str | None] = unwrapped.sentences.to_pylist()
    return found


def fields_of(unwrapped: Unwrapped) -> list[tuple[str | None, int | None, bytes | None]]:
    columns = (unwrapped.game_name, unwrapped.schema_id, unwrapped.payload)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def test_a_wrapper_gives_its_fields() -> None:
    unwrapped = taken_apart(wrapped("chess", 7, b"\x00\xff"), wrapped("将棋", -1, b""))
    assert fields_of(unwrapped) == [("chess", 7, b"\x00\xff"), ("将棋", -1, b"")]
    assert (causes(unwrapped), sentences(unwrapped)) == ([None, None], [None, None])
    assert [unwrapped.game_name.type, unwrapped.schema_id.type, unwrapped.payload.type] == [
        pa.string(),
        pa.int32(),
        pa.binary(),
    ]


def test_a_field_that_is_not_there_is_null_and_an_empty_one_is_not() -> None:
    assert fields_of(taken_apart(wrapped("chess", None, None), wrapped("chess", 0, b""))) == [
        ("chess", None, None),
        ("chess", 0, b""),
    ]


@pytest.mark.parametrize(
    "record",
    [
        b"\xff",
        wrapped()[:-1],
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\x02\xc3\x28",
        b"\x08\x05",
        b"\x12\x01\x01",
        b"{}",
        b"\x00" * 5,
    ],
    ids=[
        "no tag",
        "truncated",
        "a length beyond the end",
        "bad utf-8",
        "name as number",
        "id as bytes",
        "json",
        "zeros",
    ],
)
def test_what_is_no_wrapper_is_refused_with_the_sentence_of_the_parser(record: bytes) -> None:
    unwrapped = taken_apart(wrapped(), record, wrapped())
    assert causes(unwrapped) == [None, MALFORMED, None]
    assert sentences(unwrapped)[1]
    assert fields_of(unwrapped) == [("chess", 1, b"p"), (None, None, None), ("chess", 1, b"p")]


def test_a_record_without_a_value_is_no_wrapper() -> None:
    unwrapped = taken_apart(None, wrapped())
    assert (causes(unwrapped)[0], sentences(unwrapped)[0]) == (MALFORMED, "The record has no value.")
    assert causes(unwrapped)[1] is None


@pytest.mark.parametrize("name", ["", None, "x" * 81, "a\x00", "a\nb", "__HIVE_DEFAULT_PARTITION__", " "])
def test_a_name_that_cannot_be_used_is_refused_with_its_reason(name: str | None) -> None:
    unwrapped = taken_apart(wrapped(name))
    assert causes(unwrapped) == [BAD_NAME]
    assert sentences(unwrapped) == [invalid_reason(name or "", MAX_NAME_BYTES)]
    assert fields_of(unwrapped) == [(name, 1, b"p")]


def test_the_limit_of_the_settings_is_the_limit_of_the_name() -> None:
    short = wrapper_format(Settings(games=GamesSettings(max_name_bytes=5)))
    assert causes(taken_apart(wrapped("chess"), wrapped("chess2"), wrapper=short)) == [None, BAD_NAME]


def test_an_empty_record_is_a_wrapper_without_a_name() -> None:
    assert causes(taken_apart(b"")) == [BAD_NAME]


def test_fields_that_the_wrapper_does_not_know_are_let_through() -> None:
    assert fields_of(taken_apart(wrapped() + b"\x20\x07")) == [("chess", 1, b"p")]


def test_of_a_doubled_field_the_last_one_counts() -> None:
    assert fields_of(taken_apart(wrapped("chess", 1, b"p") + wrapped("go", None, None))) == [("go", 1, b"p")]


@pytest.mark.parametrize("records", [(), (None,), (None, b"\xff"), (b"\xff",)])
def test_a_batch_without_a_good_record_has_arrays_of_its_length(records: Sequence[bytes | None]) -> None:
    unwrapped = taken_apart(*records)
    assert fields_of(unwrapped) == [(None, None, None)] * len(records)
    assert causes(unwrapped) == [MALFORMED] * len(records)


records = st.one_of(
    st.none(),
    st.binary(max_size=8),
    st.builds(
        wrapped,
        st.none() | st.text(max_size=5) | st.just("x" * 81),
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.binary(max_size=5),
    ),
)


@given(st.lists(records, max_size=20))
def test_a_record_is_taken_apart_alike_whatever_stands_beside_it(some: list[bytes | None]) -> None:
    together = taken_apart(*some)
    alone = [taken_apart(record) for record in some]
    assert fields_of(together) == [fields_of(one)[0] for one in alone]
    assert causes(together) == [causes(one)[0] for one in alone]
    assert sentences(together) == [sentences(one)[0] for one in alone]


@given(st.text(max_size=100), st.integers(-(2**31), 2**31 - 1), st.binary(max_size=50))
def test_what_was_wrapped_comes_back_and_only_its_name_decides(name: str, schema_id: int, payload: bytes) -> None:
    unwrapped = taken_apart(wrapped(name, schema_id, payload))
    assert fields_of(unwrapped) == [(name, schema_id, payload)]
    assert (causes(unwrapped)[0] is None) == (invalid_reason(name, MAX_NAME_BYTES) is None)


@given(st.lists(st.none() | st.binary(max_size=30), max_size=20))
def test_a_refused_record_has_a_cause_and_a_sentence_and_a_good_one_has_neither(some: list[bytes | None]) -> None:
    unwrapped = taken_apart(*some)
    assert len(unwrapped.causes) == len(some)
    assert [cause is None for cause in causes(unwrapped)] == [sentence is None for sentence in sentences(unwrapped)]
