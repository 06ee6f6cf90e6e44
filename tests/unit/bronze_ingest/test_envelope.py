"""Another team's envelope: its other fields become columns of bronze, and whatever its game is, it becomes a name."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bronze_ingest.envelope import column_conflicts, extra_arrays, extra_columns
from bronze_ingest.unwrap import Unwrapped, WrapperFormat, bronze_columns, unwrap, wrapper_format
from demux.core.columns.arrow import arrow_type
from demux.core.columns.types import EMPTY_STRUCT, Array, Column, Map, Primitive, Struct
from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.settings.settings import Settings
from demux.core.tables import BRONZE, SOURCE_OPTIONAL
from tests.support.data.envelopes import RICH, RICH_FIELDS, message_of, wrapper_of
from tests.support.data.messages import payloads

HEADERS = next(arrow_type(column.type) for column in SOURCE_OPTIONAL if column.name == "headers")


@pytest.fixture
def rich(tmp_path: Path) -> WrapperFormat:
    return wrapper_of(tmp_path, **RICH_FIELDS)


def taken_apart(wrapper: WrapperFormat, *records: bytes | None) -> Unwrapped:
    return unwrap(pa.array(records, pa.binary()), pa.nulls(len(records), HEADERS), wrapper)


def extra_rows(wrapper: WrapperFormat, unwrapped: Unwrapped) -> list[dict[str, Any]]:
    names = [column.name for column in extra_columns(wrapper.envelope)]
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(one.to_pylist() for one in unwrapped.extra), strict=True)
    ]


def named(wrapper: WrapperFormat, *records: Any) -> list[tuple[str | None, str | None]]:
    unwrapped = taken_apart(wrapper, *(record.SerializeToString() for record in records))
    return list(zip(unwrapped.game_name.to_pylist(), unwrapped.sentences.to_pylist(), strict=True))


def test_bronze_has_a_column_for_each_further_field_before_the_time_of_ingestion(rich: WrapperFormat) -> None:
    own = {column.name: column for column in BRONZE}
    registry = Struct((Column("schema", Primitive.BIGINT, 1),))
    region, empty = Column("region", Primitive.STRING, 2), Column("empty", EMPTY_STRUCT, 4)
    other = Column("Region__5", Primitive.STRING, 5)
    hop = Struct((Column("title", Primitive.STRING, 1), region, Column("registry", registry, 3), empty, other))
    assert bronze_columns(rich) == Struct(
        (
            *BRONZE.columns[:-2],
            Column("wrapper_header", Struct((region, empty, other)), 1),
            Column("wrapper_sent_at", Primitive.TIMESTAMP, 2),
            Column("wrapper_labels", Map(Primitive.STRING, registry), 3),
            Column("wrapper_hops", Array(hop), 4),
            Column("wrapper_device", Primitive.STRING, 5),
            Column("wrapper_account", Primitive.DECIMAL_20_0, 6),
            Column("wrapper_Sent_At__7", Primitive.INT, 7),
            Column("wrapper_score", Primitive.DOUBLE, 8),
            own["ingested_at"],
            own["batch_id"],
        )
    )


@pytest.mark.parametrize(
    ("old", "new", "sentences"),
    [
        ("double score = 8;", "double score = 8; string extra = 10;", ()),
        ("int64 schema = 1;", "int64 schema = 1; string more = 2;", ()),
        ("string device = 5;", "", ()),
        ("string device = 5;", "string gadget = 5;", ()),
        (
            "int32 Sent_At = 7;",
            "string Sent_At = 7;",
            ("Column wrapper_Sent_At__7 is INT in the table, and STRING now.",),
        ),
        (
            "double score = 8;",
            "double score = 18;",
            ("Column wrapper_score holds field 8 in the table, and field 18 now.",),
        ),
        (
            "string region = 2;",
            "repeated string region = 2;",
            (
                "Column wrapper_header.region is STRING in the table, and ARRAY<STRING> now.",
                "Column wrapper_hops.element.region is STRING in the table, and ARRAY<STRING> now.",
            ),
        ),
        (
            "map<string, Registry> labels",
            "map<int32, Registry> labels",
            (
                "Column wrapper_labels is MAP<STRING, STRUCT<schema: BIGINT>> in the table, "
                "and MAP<INT, STRUCT<schema: BIGINT>> now.",
            ),
        ),
    ],
)
def test_an_envelope_may_gain_and_lose_fields_and_not_change_them(
    tmp_path: Path, rich: WrapperFormat, old: str, new: str, sentences: tuple[str, ...]
) -> None:
    changed = bronze_columns(wrapper_of(tmp_path, RICH.replace(old, new), **RICH_FIELDS))
    assert column_conflicts(bronze_columns(rich), changed) == sentences
    assert column_conflicts(BRONZE, changed) == ()


def test_our_own_envelope_adds_no_column() -> None:
    assert bronze_columns(wrapper_format(Settings())) == BRONZE


def test_the_further_fields_come_with_their_values(rich: WrapperFormat) -> None:
    message = message_of(rich)
    full = message(device="d1", Sent_At=7, score=0.5)
    full.header.title, full.header.region, full.header.registry.schema, full.body.bytes = 1, "eu", 11, b"p"
    full.header.empty.SetInParent()
    full.sent_at.FromDatetime(datetime(2026, 1, 2, tzinfo=timezone.utc))
    full.labels["a"].schema = 3
    full.hops.add(title=2, region="us")
    bare = message()
    bare.header.title = 2
    unwrapped = taken_apart(rich, full.SerializeToString(), bare.SerializeToString())
    assert unwrapped.causes.to_pylist() == [None, None]
    assert unwrapped.game_name.to_pylist() == ["CHESS", "GO"]
    assert unwrapped.schema_id.to_pylist() == [11, None]
    assert unwrapped.payload.to_pylist() == [b"p", None]
    hop = {"title": "GO", "region": "us", "registry": None, "empty": None, "Region__5": ""}
    assert extra_rows(rich, unwrapped) == [
        {
            "wrapper_header": {"region": "eu", "empty": {"_empty": True}, "Region__5": ""},
            "wrapper_sent_at": datetime(2026, 1, 2, tzinfo=timezone.utc),
            "wrapper_labels": [("a", {"schema": 3})],
            "wrapper_hops": [hop],
            "wrapper_device": "d1",
            "wrapper_account": None,
            "wrapper_Sent_At__7": 7,
            "wrapper_score": 0.5,
        },
        {
            "wrapper_header": {"region": "", "empty": None, "Region__5": ""},
            "wrapper_sent_at": None,
            "wrapper_labels": [],
            "wrapper_hops": [],
            "wrapper_device": None,
            "wrapper_account": None,
            "wrapper_Sent_At__7": 0,
            "wrapper_score": None,
        },
    ]


def test_the_arrays_have_the_types_of_their_columns_among_bad_and_random_records(rich: WrapperFormat) -> None:
    records = [*payloads(message_of(rich), seed=5, count=60), None, b"\xff"]
    random.Random(1).shuffle(records)
    unwrapped = taken_apart(rich, *records)
    assert [array.type for array in unwrapped.extra] == [
        arrow_type(column.type) for column in extra_columns(rich.envelope)
    ]
    assert {len(array) for array in unwrapped.extra} == {len(records)}
    # as text: a NaN equals nothing
    together = [repr(row) for row in extra_rows(rich, unwrapped)]
    assert together == [repr(extra_rows(rich, taken_apart(rich, record))[0]) for record in records]
    assert set(unwrapped.causes.to_pylist()) == {None, "INVALID_GAME_NAME", "MALFORMED_WRAPPER"}


def test_a_sliced_batch_has_the_same_rest(rich: WrapperFormat) -> None:
    records = payloads(message_of(rich), seed=6, count=20)
    columns = decoder_of(rich.envelope.descriptor_set, rich.envelope.message).decode(records).columns
    whole = [array.to_pylist()[3:9] for array in extra_arrays(columns, rich.envelope)]
    assert [array.to_pylist() for array in extra_arrays([one[3:9] for one in columns], rich.envelope)] == whole


def test_a_message_that_holds_nothing_else_leaves_no_column(tmp_path: Path) -> None:
    text = """syntax = "proto3";
        message Envelope {
          message Head { message Ids { int32 game = 1; int32 schema = 2; } Ids ids = 1; }
          message Body { bytes payload = 1; }
          Head head = 1; Body body = 2;
        }"""
    fields = {"game_field": "head.ids.game", "schema_id_field": "head.ids.schema", "payload_field": "body.payload"}
    assert bronze_columns(wrapper_of(tmp_path, text, **fields)) == BRONZE


LONG = "LONG_" + "X" * 80


@pytest.mark.parametrize(
    ("syntax", "kind", "given", "expected"),
    [
        ("proto3", "string", "chess", ("chess", None)),
        ("proto3", "string", "", ("", "The game name is empty.")),
        ("proto3", "string", None, ("", "The game name is empty.")),
        ("proto3", "optional string", "", ("", "The game name is empty.")),
        ("proto3", "optional string", None, (None, "The game name is empty.")),
        ("proto3", "string", "0", ("0", None)),
        ("proto3", "int64", -5, ("-5", None)),
        ("proto3", "uint64", 2**64 - 1, ("18446744073709551615", None)),
        ("proto3", "fixed32", 0, ("0", "The game is 0 or absent.")),
        ("proto3", "optional sint32", None, (None, "The game is 0 or absent.")),
        ("proto3", "Title", 1, ("CHESS", None)),
        ("proto3", "Title", 77, ("77", "The game is number 77, which has no name in the envelope's enum.")),
        ("proto3", "Title", -1, ("-1", "The game is number -1, which has no name in the envelope's enum.")),
        ("proto3", "Title", 0, ("ZERO", "The game is ZERO or absent.")),
        ("proto3", "optional Title", None, (None, "The game is ZERO or absent.")),
        ("proto3", "Title", 2, (LONG, "The game name has 85 bytes in UTF-8; at most 80 are allowed.")),
        ("proto2", "optional Title", None, (None, "The game is ZERO or absent.")),
        ("proto2", "optional Title", 1, ("CHESS", None)),
    ],
)
def test_a_game_of_any_kind_becomes_a_name(
    tmp_path: Path, syntax: str, kind: str, given: Any, expected: tuple[str | None, str | None]
) -> None:
    fields = f"{kind} game = 1; optional uint64 schema_id = 2; optional bytes payload = 3;"
    enum = f"enum Title {{ ZERO = 0; CHESS = 1; {LONG} = 2; }}"
    text = f'syntax = "{syntax}"; {enum} message Envelope {{ {fields} }}'
    wrapper = wrapper_of(tmp_path, text, game_field="game")
    message = message_of(wrapper)
    assert named(wrapper, message() if given is None else message(game=given)) == [expected]


def test_a_game_that_a_closed_enum_has_no_name_for_is_absent(tmp_path: Path) -> None:
    text = """syntax = "proto2"; enum Title { ZERO = 0; CHESS = 1; } message Envelope { optional Title game = 1;
        optional int32 schema_id = 2; optional bytes payload = 3; }"""
    wrapper = wrapper_of(tmp_path, text, game_field="game")
    unwrapped = taken_apart(wrapper, b"\x08\x4d", b"\x08\x01")
    assert unwrapped.sentences.to_pylist() == ["The game is ZERO or absent.", None]
    assert unwrapped.causes.to_pylist() == ["INVALID_GAME_NAME", None]


@pytest.mark.parametrize(
    ("kind", "sent", "kept"),
    [
        ("uint64", 2**31 - 1, 2**31 - 1),
        ("uint64", 2**31, None),
        ("uint64", 2**64 - 1, None),
        ("int64", -(2**31) - 1, None),
        ("sint64", -(2**31), -(2**31)),
        ("fixed32", 2**32 - 1, None),
        ("uint32", 0, 0),
    ],
)
def test_a_schema_id_that_is_no_int_is_refused_by_its_number(
    tmp_path: Path, kind: str, sent: int, kept: int | None
) -> None:
    fields = f"string game_name = 1; {kind} schema_id = 2; bytes payload = 3;"
    wrapper = wrapper_of(tmp_path, f'syntax = "proto3"; message Envelope {{ {fields} }}')
    message = message_of(wrapper)
    records = [message(game_name="go", schema_id=number).SerializeToString() for number in (7, sent, 8)]
    unwrapped = taken_apart(wrapper, *records)
    assert unwrapped.schema_id.type == pa.int32()
    assert unwrapped.schema_id.to_pylist() == [7, kept, 8]
    sentence = None if kept is not None else f"The schema id {sent} does not fit into 32 bits."
    assert unwrapped.sentences.to_pylist() == [None, sentence, None]
    assert unwrapped.causes.to_pylist() == [None, sentence and "MALFORMED_WRAPPER", None]


def test_an_envelope_may_be_proto2_with_required_fields_and_groups(tmp_path: Path) -> None:
    text = """syntax = "proto2"; message Envelope { required string game_name = 1; optional int32 schema_id = 2;
        optional group Payload = 3 { optional bytes data = 1; optional int32 size = 2; } }"""
    wrapper = wrapper_of(tmp_path, text, payload_field="payload.data")
    full = message_of(wrapper)(game_name="go", payload={"data": b"p", "size": 3})
    unwrapped = taken_apart(wrapper, full.SerializeToString(), b"\x10\x01")
    assert extra_rows(wrapper, unwrapped)[0] == {"wrapper_payload": {"size": 3}}
    assert unwrapped.payload.to_pylist() == [b"p", None]
    assert unwrapped.sentences.to_pylist() == [None, "Message 'Envelope' is missing required fields: game_name"]
