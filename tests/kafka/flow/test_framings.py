"""Frames and envelopes as other teams' producers write them, over the whole way of a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from demux.core.protobuf.wire.framing import HEADER
from producer.records import head, wrap_payload
from tests.fakes.registry_server import FakeRegistry, serving
from tests.support.data.envelopes import RICH, RICH_FIELDS
from tests.support.flow.root import Root, Rows, wrapper
from tests.support.kafka.pipeline import Record, classes, deliver, ends, kafka_root, replayed
from tools.servers.broker import Broker
from tools.servers.registry import Registry

FRAMED = """
    syntax = "proto3";
    package framed;
    message First { string a = 1; message Inner { string b = 1; message Deep { string c = 1; } } }
    message Second { string d = 1; map<string, string> tags = 2; message Inner { string e = 1; } }
"""
MESSAGES = {
    "first": "framed.First",
    "inner": "framed.First.Inner",
    "deep": "framed.First.Inner.Deep",
    "second": "framed.Second",
    "behind": "framed.Second.Inner",
}
GUIDED_ID = 4000
COLUMNS = {"first": "a", "inner": "b", "deep": "c", "second": "d", "behind": "e"}


class Writer:
    """Confluent's own serializer, for messages of one subject."""

    def __init__(self, url: str, subject: str, into_header: Any = None) -> None:
        self._client = SchemaRegistryClient({"url": url})
        self._options: dict[str, Any] = {"subject.name.strategy": lambda *_: subject}
        if into_header is not None:
            self._options["schema.id.serializer"] = into_header

    def __call__(self, message: Message) -> Record:
        """The message as a record: with its frame before it, or in a header."""
        headers: list[tuple[str, str | bytes | None]] = []
        context = SerializationContext("topic", MessageField.VALUE, headers)
        value = ProtobufSerializer(type(message), self._client, self._options)(message, context)
        assert value is not None
        return Record(value, [(name, content) for name, content in headers if isinstance(content, bytes)])

    def id_of(self, subject: str) -> int:
        schema_id = self._client.get_latest_version(subject).schema_id
        assert schema_id is not None
        return schema_id


def message(kind: str) -> Message:
    return classes(FRAMED)(MESSAGES[kind])(**{COLUMNS[kind]: f"it is {kind}"})


def id_into_header(payload: bytes, context: Any, schema_id: Any) -> bytes:
    """Put the frame with the short id into the header, as clients of old registries do."""
    context.headers.append((HEADER, schema_id.id_to_bytes()))
    return payload


def only(rows: Rows) -> dict[str, Any]:
    (row,) = rows
    return row


def refused(root: Root) -> list[tuple[int, str, str]]:
    return sorted((row["offset"], row["cause"], row["sentence"]) for row in root.quarantine())


@pytest.fixture(scope="module")
def framed(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Root, int]:
    """A root whose payloads have frames, and the id of their schema."""
    root = kafka_root(
        spark,
        tmp_path_factory.mktemp("framed") / "root",
        broker.bootstrap,
        "framed-payloads",
        framing={"payload": "confluent"},
        # a frame that says which message it is knows better
        registry={"url": registry.url, "messages": {"framed": "framed.Second"}},
    )
    write = Writer(registry.url, "framed")
    values = {kind: write(message(kind)).value or b"" for kind in MESSAGES}
    schema_id = write.id_of("framed")
    records = [wrap_payload(head(kind, 0), value) for kind, value in values.items()]
    records += [
        wrapper("first", schema_id, values["first"]),
        wrapper("first", schema_id + 1, values["first"]),
        wrapper("first", schema_id, message("first").SerializeToString()),
    ]
    deliver(root, records)
    assert ends(root.run()) == dict.fromkeys(sorted(MESSAGES), "done")
    return root, schema_id


def test_the_frame_before_a_payload_says_which_schema_and_which_of_its_messages(framed: tuple[Root, int]) -> None:
    root, schema_id = framed
    for kind in ("inner", "deep", "second", "behind"):
        row = only(root.silver(kind))
        assert (row[COLUMNS[kind]], row["_schema_id"]) == (f"it is {kind}", schema_id)
    # 0 in the wrapper is no id, and the frame's own id agrees
    assert [(row["a"], row["_offset"]) for row in root.silver("first")] == [("it is first", 0), ("it is first", 5)]
    indexes = {row["game_name"]: row["message_indexes"] for row in root.bronze()}
    # this serializer also counts the hidden message of the map field before it
    assert indexes == {"first": "0", "inner": "0,0", "deep": "0,0,0", "second": "1", "behind": "1,1"}


def test_bronze_has_the_payload_without_its_frame(framed: tuple[Root, int]) -> None:
    root, _ = framed
    payloads = {row["game_name"]: row["payload"] for row in root.bronze()}
    assert payloads == {kind: message(kind).SerializeToString() for kind in MESSAGES}


def test_a_frame_and_a_wrapper_that_disagree_and_a_payload_without_a_frame_are_set_aside(
    framed: tuple[Root, int],
) -> None:
    root, schema_id = framed
    assert refused(root) == [
        (
            6,
            "SCHEMA_ID_CONFLICT",
            f"The wrapper says schema id {schema_id + 1}, the frame says {schema_id}.",
        ),
        (7, "MALFORMED_FRAME", "The payload has no frame: it begins with 0x0a, not with 0x00 or 0x01."),
    ]


@pytest.fixture(scope="module")
def in_headers(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Root, dict[str, int]]]:
    """A root whose ids stand in headers, and the ids of its subjects."""
    guided = FakeRegistry(first_id=GUIDED_ID)
    with serving(guided):
        root = kafka_root(
            spark,
            tmp_path_factory.mktemp("headers") / "root",
            broker.bootstrap,
            "ids-in-headers",
            framing={"payload": "header"},
            registry={"url": registry.url, "messages": {"headers-b": "framed.Second"}},
            registries={"guided": {"url": guided.url, "games": ["guid-*"]}},
        )
        with SchemaRegistryClient({"url": registry.url}) as client:
            ids = {
                subject: client.register_schema(subject, Schema(f"{FRAMED}// {subject}\n", "PROTOBUF"))
                for subject in ("headers-a", "headers-b")
            }
        by_id = Writer(registry.url, "headers", id_into_header)(message("inner"))
        by_guid = Writer(guided.url, "guided", header_schema_id_serializer)(message("deep"))
        ids |= {"headers": id_in(by_id), "guided": GUIDED_ID}

        def record(game: str, content: Record, own_id: int = 0) -> Record:
            return Record(wrap_payload(head(game, own_id), content.value or b""), content.headers)

        def bare(subject: str, kind: str) -> Record:
            frame = b"\0" + ids[subject].to_bytes(4, "big")
            return Record(message(kind).SerializeToString(), [(HEADER, frame)])

        deliver(
            root,
            [
                record("id", by_id),
                record("guid-1", by_guid),
                record("a", bare("headers-a", "first")),
                record("b", bare("headers-b", "second"), ids["headers-b"]),
                record("id", by_id, ids["headers"] + 1),
                record("id", Record(by_id.value)),
                # of two headers of this name the last one counts
                record("id", Record(by_id.value, [(HEADER, b"\x07"), *by_id.headers])),
                record("lost", by_guid),
            ],
        )
        assert ends(root.run()) == dict.fromkeys(["a", "b", "guid-1", "id", "lost"], "done")
        yield root, ids


def id_in(record: Record) -> int:
    ((name, frame),) = record.headers
    assert name == HEADER
    return int.from_bytes(frame[1:5], "big")


def test_an_id_in_a_header_decodes_with_or_without_a_message(in_headers: tuple[Root, dict[str, int]]) -> None:
    root, ids = in_headers
    assert [(row["b"], row["_schema_id"]) for row in root.silver("id")] == [("it is inner", ids["headers"])] * 2
    # without message indexes the settings decide, and without those it is the first of the file
    assert (only(root.silver("a"))["a"], only(root.silver("b"))["d"]) == ("it is first", "it is second")
    bronze = {row["game_name"]: (row["schema_id"], row["message_indexes"]) for row in root.bronze()}
    assert (bronze["id"], bronze["b"]) == ((ids["headers"], "0,0"), (ids["headers-b"], None))


def test_a_guid_in_a_header_decodes_where_the_registry_gives_them(in_headers: tuple[Root, dict[str, int]]) -> None:
    root, ids = in_headers
    row = only(root.silver("guid-1"))
    assert (row["c"], row["_schema_id"]) == ("it is deep", ids["guided"])
    bronze = only([row for row in root.bronze() if row["game_name"] == "guid-1"])
    assert (bronze["schema_id"], len(bronze["schema_guid"]), bronze["message_indexes"]) == (None, 36, "0,0,0")


def test_a_header_that_is_missing_or_disagrees_sets_its_record_aside(in_headers: tuple[Root, dict[str, int]]) -> None:
    root, ids = in_headers
    own, said = ids["headers"] + 1, ids["headers"]
    assert [row for row in refused(root) if row[1] != "UNKNOWN_SCHEMA"] == [
        (4, "SCHEMA_ID_CONFLICT", f"The wrapper says schema id {own}, the frame says {said}."),
        (5, "MALFORMED_FRAME", "The record has no header __value_schema_id."),
    ]


def test_a_guid_that_the_registry_does_not_give_decodes_by_a_replay_once_the_right_registry_is_named(
    in_headers: tuple[Root, dict[str, int]],
) -> None:
    root, ids = in_headers
    ((_, cause, sentence),) = (row for row in refused(root) if row[0] == 7)
    assert cause == "UNKNOWN_SCHEMA"
    assert "gives no GUIDs, so it has no schema " in sentence
    guided = root.settings.registries["guided"]
    settings = root.settings.model_copy(
        update={"registries": {"guided": guided.model_copy(update={"games": ("guid-*", "lost")})}}
    )
    assert replayed(Root(root.spark, settings)) == {"lost": (1, 0)}
    row = only(root.silver("lost"))
    assert (row["c"], row["_schema_id"]) == ("it is deep", ids["guided"])


def test_another_teams_framed_envelope_leads_to_tables_and_may_gain_fields(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path
) -> None:
    proto = tmp_path / "envelope.proto"
    proto.write_text(RICH)
    root = kafka_root(
        spark,
        tmp_path / "root",
        broker.bootstrap,
        "acme-envelopes",
        registry={"url": registry.url},
        framing={"wrapper": "confluent", "payload": "field"},
        wrapper={"proto": str(proto), **RICH_FIELDS},
    )
    with SchemaRegistryClient({"url": registry.url}) as client:
        schema_id = client.register_schema("acme-events", Schema(f"{FRAMED}// acme\n", "PROTOBUF"))
    write = Writer(registry.url, "acme-envelope")

    def envelope(text: str, title: int, **fields: Any) -> bytes:
        made: Any = classes(text)("acme.Envelope")(device="d1", Sent_At=7, **fields)
        made.header.title, made.header.region, made.header.registry.schema = title, "eu", schema_id
        made.body.bytes = message("first").SerializeToString()
        return write(made).value or b""

    before = [envelope(RICH, 1), envelope(RICH, 2), envelope(RICH, 0)]
    deliver(root, [*before, before[0][5:]])
    assert ends(root.run()) == {"CHESS": "done", "GO": "done"}
    assert only(root.silver("CHESS"))["a"] == only(root.silver("GO"))["a"] == "it is first"
    assert [(offset, cause) for offset, cause, _ in refused(root)] == [
        (2, "INVALID_GAME_NAME"),
        (3, "MALFORMED_WRAPPER"),
    ]
    assert {row["game_name"]: row["wrapper_header"]["region"] for row in root.bronze()} == {"CHESS": "eu", "GO": "eu"}
    assert "wrapper_trace" not in root.bronze()[0]

    gained = RICH.replace("Body body = 9;", "Body body = 9; string trace = 10;").replace(
        "string region = 2;", "string region = 2; string zone = 6;"
    )
    proto.write_text(gained)
    deliver(root, [envelope(gained, 1, trace="t1", header={"zone": "z1"}), before[0]])
    assert ends(root.run()) == {"CHESS": "done"}
    rows = sorted(root.bronze(), key=lambda row: row["offset"])
    assert [(row["offset"], row["wrapper_trace"], row["wrapper_header"]["zone"]) for row in rows] == [
        (0, None, None),
        (1, None, None),
        (4, "t1", "z1"),
        (5, "", ""),
    ]
    assert [row["wrapper_device"] for row in rows] == ["d1"] * 4
    assert [row["_offset"] for row in root.silver("CHESS")] == [0, 4, 5]
