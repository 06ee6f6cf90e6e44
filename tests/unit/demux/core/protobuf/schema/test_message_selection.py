"""Which message of a file is meant: by message indexes, by configuration, or the registry's own."""

from __future__ import annotations

import pytest

from demux.core.errors import SchemaInvalid
from demux.core.protobuf.schema.message_selection import indexes_of_message, messages_at, with_message
from demux.core.protobuf.schema.protoc import CompiledSchema, compile_schema
from demux.core.registry.protocol import ImportedFile, RegisteredSchema

IMPORTED = 'syntax = "proto3"; package p; message Other { message Deep {} }'
TEXT = """
syntax = "proto3"; package p; import "other.proto";
message A { message B { message C {} message D {} } message E {} }
message F { message G {} message H {} }
message Mapped { map<string, int32> first = 1; message I {} message J {} map<string, int32> last = 2; message K {} }
message Late { message L {} map<string, int32> last = 1; }
"""


def schema(text: str = TEXT, message: str | None = None) -> CompiledSchema:
    references = (ImportedFile("other.proto", IMPORTED),)
    return compile_schema(RegisteredSchema(7, "chess-value", 3, text, "own.proto", references, message))


@pytest.mark.parametrize(
    ("indexes", "names"),
    [
        ("0", ("p.A",)),
        ("1", ("p.F",)),
        ("0,0", ("p.A.B",)),
        ("0,0,1", ("p.A.B.D",)),
        ("0,1", ("p.A.E",)),
        ("1,0", ("p.F.G",)),
        ("1,1", ("p.F.H",)),
        ("01", ("p.F",)),
        # nowhere
        ("4", ()),
        ("0,2", ()),
        ("0,0,2", ()),
        ("0,0,0,0", ()),
        ("999999999", ()),
        ("9" * 5000, ()),
        ("", ()),
        ("-1", ()),
        ("0,-1", ()),
        ("0,", ()),
        ("0 ,1", ()),
        ("٠", ()),
        ("one", ()),
    ],
)
def test_indexes_count_the_messages_of_the_file_and_then_those_inside(indexes: str, names: tuple[str, ...]) -> None:
    assert messages_at(schema().descriptor_set, indexes) == names


@pytest.mark.parametrize("name", ["p.A", "p.F", "p.A.B", "p.A.B.D", "p.A.E", "p.F.H", "p.Mapped.K", "p.Late.L"])
def test_the_indexes_of_a_message_lead_to_it(name: str) -> None:
    path = indexes_of_message(schema().descriptor_set, name)
    assert name in messages_at(schema().descriptor_set, ",".join(map(str, path)))


@pytest.mark.parametrize("name", ["p.Other", "q.A", "p.A.Z", "p.Mapped.FirstEntry", "p."])
def test_only_a_message_of_the_file_itself_has_indexes(name: str) -> None:
    with pytest.raises(SchemaInvalid, match="is not a message of the file"):
        indexes_of_message(schema().descriptor_set, name)


def test_a_file_without_a_package_has_plain_names() -> None:
    text = 'syntax = "proto3"; message A { message B {} }'
    assert messages_at(schema(text).descriptor_set, "0,0") == ("A.B",)


def test_where_serializers_count_map_fields_differently_every_message_meant_is_named() -> None:
    # the text has I, J, K; the descriptor FirstEntry, I, J, LastEntry, K
    found = [messages_at(schema().descriptor_set, f"2,{at}") for at in range(6)]
    assert found == [
        ("p.Mapped.I",),
        ("p.Mapped.J", "p.Mapped.I"),
        ("p.Mapped.K", "p.Mapped.J"),
        (),
        ("p.Mapped.K",),
        (),
    ]
    # an entry that stands last disturbs nobody, and is never sent by itself
    assert [messages_at(schema().descriptor_set, f"3,{at}") for at in range(2)] == [("p.Late.L",), ()]


@pytest.mark.parametrize(
    ("own", "configured", "indexes", "meant"),
    [
        (None, None, None, "p.A"),
        ("p.F", None, None, "p.F"),
        ("p.F", "p.A.B", None, "p.A.B"),
        ("p.F", "p.Other.Deep", None, "p.Other.Deep"),
        ("p.F", "p.A.B", "0,1", "p.A.E"),
        (None, "p.Mapped.J", "2,1", "p.Mapped.J"),
        (None, "p.Mapped.I", "2,1", "p.Mapped.I"),
        # what is configured amiss does not matter to a row that says it itself
        (None, "p.Nothing", "1", "p.F"),
    ],
)
def test_indexes_come_before_configuration_and_that_before_the_registry(
    own: str | None, configured: str | None, indexes: str | None, meant: str
) -> None:
    before = schema(message=own)
    after = with_message(before, indexes, configured)
    assert after.message == meant
    assert (after.schema_id, after.subject, after.version) == (7, "chess-value", 3)
    assert after.descriptor_set is before.descriptor_set


@pytest.mark.parametrize(
    ("configured", "indexes", "cause", "remedy"),
    [
        (None, "0,7", "has no message at the indexes 0,7", "Correct `messages`"),
        ("p.A", "0,7", "has no message at the indexes 0,7", "Correct `messages`"),
        ("p.Nothing", None, "has no message 'p.Nothing', which is named for its subject", "Correct `messages`"),
        ("p.A", "2,1", "has at the indexes 2,1 p.Mapped.J or p.Mapped.I, depending on who wrote", "Name p.Mapped.J or"),
    ],
)
def test_what_leads_nowhere_or_to_two_places_is_said(
    configured: str | None, indexes: str | None, cause: str, remedy: str
) -> None:
    with pytest.raises(SchemaInvalid) as invalid:
        with_message(schema(), indexes, configured)
    assert invalid.value.message.startswith(f"Schema 7 ('chess-value' version 3) {cause}")
    assert invalid.value.remedy.startswith(remedy)
