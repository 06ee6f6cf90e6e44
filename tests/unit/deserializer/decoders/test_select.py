"""Which decoder a batch gets, and which messages from_protobuf does not suit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from demux.core.columns.types import Struct
from demux.core.errors import DecoderUnsuited, RuntimeMissing, SchemaUnknown
from demux.core.schemas.ref import SchemaRef
from demux.core.settings.settings import Decoder
from deserializer.decoders.schema_decision import Decisions, WriterSchema, decide
from deserializer.decoders.select import ARROW, FromProtobuf, Unsuited, choose, native_decoder, unsuited_reason
from tests.support.data.chess import EMPTY, MISFIT, VERSION_1, VERSION_3, compiled
from tests.support.data.protos import ALL_DELIMITED, PROTO2, PROTO3, RECURSIVE, WELL_KNOWN, Schema, of_text, wide
from tests.support.data.protos import compiled as descriptor_set_of

NATIVE = FromProtobuf(Path("/root/control/descriptors"))
MISSING = RuntimeMissing("It is not there.", "Get it.")
V1, V3, NO_FIELDS = compiled(VERSION_1, 11, 1), compiled(VERSION_3, 13, 3), compiled(EMPTY, 20, 9)


def decisions(*schema_ids: int) -> Decisions:
    known = {11: V1, 13: V3, 14: compiled(MISFIT, 14, 4), 20: NO_FIELDS}
    unknown = SchemaUnknown("The registry has no such schema.", "Register it.")
    return decide(Struct(()), {SchemaRef(each): known.get(each, unknown) for each in schema_ids})


def writer(schema: Schema, message: str) -> list[WriterSchema]:
    return [WriterSchema(7, descriptor_set_of(schema), message)]


def test_auto_takes_the_faster_one_which_suits_every_writer() -> None:
    assert choose(Decoder.AUTO, NATIVE, decisions(11, 13, 14, 99)) is ARROW
    assert choose(Decoder.AUTO, NATIVE, decisions(11, 20)) is ARROW
    assert choose(Decoder.AUTO, MISSING, decisions(11)) is ARROW


def test_arrow_is_taken_when_asked_for() -> None:
    assert choose(Decoder.ARROW, NATIVE, decisions(11)) is ARROW


def test_spark_s_own_is_taken_when_asked_for_or_the_reason_against_it_is_raised() -> None:
    assert choose(Decoder.FROM_PROTOBUF, NATIVE, decisions(11, 13)) is NATIVE
    with pytest.raises(RuntimeMissing, match="It is not there"):
        choose(Decoder.FROM_PROTOBUF, MISSING, decisions(11))
    with pytest.raises(DecoderUnsuited, match=r"from_protobuf cannot read schema 20: Chess has no fields\. Set `decod"):
        choose(Decoder.FROM_PROTOBUF, NATIVE, decisions(11, 20))


@pytest.mark.parametrize("setting", [Decoder.AUTO, Decoder.FROM_PROTOBUF])
def test_a_batch_that_no_schema_reads_needs_no_spark_function(setting: Decoder) -> None:
    assert choose(setting, NATIVE, decisions(99)) is ARROW


@pytest.mark.parametrize(
    ("schema", "message", "reason"),
    [
        (PROTO3, "kinds3.Nested", None),
        (PROTO3, "kinds3.Empty", "kinds3.Empty has no fields"),
        (PROTO2, "kinds2.Groups", "field single is a group"),
        (PROTO2, "kinds2.HasExtended", "field one.kinds2_sub is a group"),
        (PROTO2, "kinds2.HasBag", "field bag.kinds2_Item_item is a group"),
        (ALL_DELIMITED, "delimited.Root", "field maps is a group"),
        (WELL_KNOWN, "known.Times", None),
        (WELL_KNOWN, "known.Json", "field any becomes JSON text"),
        (RECURSIVE, "recursive.Holder", "field ping.pong.pings becomes JSON text"),
    ],
    ids=str,
)
def test_groups_json_text_and_messages_without_fields_are_not_for_it(
    schema: Schema, message: str, reason: str | None
) -> None:
    assert unsuited_reason(writer(schema, message)) == (reason and f"schema 7: {reason}")


# by the rows of the table in docs/columns.md
REFUSED = {
    "`google.protobuf.Any`, `Struct`, `Value`, `ListValue`": [
        f'import "google/protobuf/{file}.proto"; message M {{ repeated google.protobuf.{name} x = 1; }}'
        for file, name in (("any", "Any"), ("struct", "Struct"), ("struct", "Value"), ("struct", "ListValue"))
    ],
    "a message type inside itself, directly or through others": [
        "message M { optional M again = 1; }",
        "message M { optional N n = 1; } message N { optional O o = 1; } message O { repeated N ns = 1; }",
    ],
    "a group, a delimited field, an extension of a message set": [
        "message M { repeated group G = 1 { optional int32 x = 1; } }",
        """message M { optional Bag bag = 1; }
        message Bag { option message_set_wire_format = true; extensions 4 to max; }
        message Item { extend Bag { optional Item item = 5; } optional string name = 1; }""",
        """message M { option message_set_wire_format = true; extensions 4 to max; }
        message Item { extend M { optional Item item = 5; } optional string name = 1; }""",
    ],
    "no fields itself (in other messages, such a message can be read)": ["message M {}"],
    "more than 1,000 fields, with the other schemas of the micro-batch, those inside messages counted": [
        "message M { " + " ".join(f"optional int32 f{n} = {n};" for n in range(1, 1_002)) + " }",
        "message M { optional N n = 1; } message N { "
        + " ".join(f"optional int32 f{n} = {n};" for n in range(1, 1_001))
        + " }",
    ],
}


def test_the_documentation_has_each_kind_of_message_that_is_not_for_it() -> None:
    page = (Path(__file__).parents[4] / "docs" / "columns.md").read_text("utf-8")
    section = page.partition("## What from_protobuf cannot read")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (.*) \| (.*) \|$", section, re.MULTILINE)[2:])
    assert set(rows) == set(REFUSED)
    assert set(rows.values()) == {reason.value for reason in Unsuited}
    for kind, texts in REFUSED.items():
        for text in texts:
            descriptor_set, _, _ = of_text(text, "t.M", syntax="proto2")
            reason = unsuited_reason([WriterSchema(7, descriptor_set, "t.M")])
            assert (reason or "").endswith(rows[kind]), text


def test_a_plan_of_too_many_columns_is_not_for_it() -> None:
    assert unsuited_reason(writer(wide(1_000), "wide.Wide")) is None
    assert unsuited_reason(writer(wide(1_001), "wide.Wide")) == "1001 columns in one plan, the limit is 1000"


def test_without_the_class_it_is_missing_whatever_the_root() -> None:
    missing = native_decoder(has_from_protobuf=False, root="/data")
    assert isinstance(missing, RuntimeMissing)
    assert missing.message == "Spark's from_protobuf is not on the class path."


def test_from_spark_3_5_on_it_needs_no_folder_for_descriptors() -> None:
    assert native_decoder(has_from_protobuf=True, root="s3://bucket/data") == FromProtobuf(None)
