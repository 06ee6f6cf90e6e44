"""Records made by hand, each bad in its own way, among good ones: where each ends, and with what sentence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest
from google.protobuf.message import DecodeError, Message
from pyspark.sql import SparkSession

from demux.core.names import names_of
from producer.records import head, wrap_payload
from tests.support.flow.root import Root, Rows, wrapper

GOOD = {"name": "ann", "score": -7}
# those of the simulator are in test_whole_spine.py
NAMES = ["chess", "chess ", "..", "/etc/passwd", "n" * 80]


@dataclass(frozen=True, slots=True)
class Sent:
    """One batch: each record's label is where it stands in `labels`, and `t/0/<place>` its id."""

    root: Root
    labels: tuple[str, ...]
    message: type[Message]

    def record_id(self, label: str) -> str:
        return f"t/0/{self.labels.index(label)}"

    def quarantined(self, label: str) -> dict[str, Any]:
        (row,) = (row for row in self.root.quarantine() if row["record_id"] == self.record_id(label))
        return row

    def silver(self, label: str, game: str = "chess") -> dict[str, Any]:
        (row,) = (row for row in self.root.silver(game) if row["_record_id"] == self.record_id(label))
        return row


@pytest.fixture(scope="module")
def sent(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Sent:
    root = Root.at(spark, tmp_path_factory.mktemp("bad") / "root")
    schema_id = root.register("chess", EVENT)
    message = root.message(schema_id)
    good = message(**GOOD).SerializeToString()
    chess = head("chess", schema_id)
    records: dict[str, bytes | None] = {
        "good": wrap_payload(chess, good),
        # the wrapper
        "null": None,
        "no wrapper": b"\x07\x07\x07",
        "truncated wrapper": wrap_payload(chess, good)[:-1],
        "wrapper with a game name that is not UTF-8": b"\x0a\x02\xff\xfe" + wrap_payload(b"", good),
        "empty wrapper": b"",
        "wrapper with a field that nobody knows": wrap_payload(chess, good) + b"\x78\x01",
        "wrapper without a payload": chess,
        "wrapper without a schema id": wrap_payload(b"\x0a\x05chess", good),
        # the name
        "empty name": wrapper("", schema_id, good),
        "name of 81 bytes": wrapper("n" * 81, schema_id, good),
        "name of 27 characters in 81 bytes": wrapper("象" * 27, schema_id, good),
        "name with a line feed": wrapper("ch\ness", schema_id, good),
        "name with a zero": wrapper("ch\0ess", schema_id, good),
        "name that is the NULL of folders": wrapper("__HIVE_DEFAULT_PARTITION__", schema_id, good),
        "name of white space": wrapper(" \u3000", schema_id, good),
        # the schema id
        "unknown schema id": wrapper("chess", 4711, good),
        "schema id 0": wrapper("chess", 0, good),
        "negative schema id": wrapper("chess", -3, good),
        # the payload
        "truncated payload": wrap_payload(chess, good[:-1]),
        "payload with a name that is not UTF-8": wrap_payload(chess, b"\x0a\x02\xff\xfe"),
        "payload with a name that is a number": wrap_payload(chess, b"\x08\x01"),
        "payload with a time in year 146 billion": wrap_payload(
            chess, b"\x1a\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"
        ),
        "payload with a nanosecond too many": wrap_payload(chess, b"\x1a\x06\x10\x80\x94\xeb\xdc\x03"),
        "payload with a wrong type inside": wrap_payload(chess, b"\x1a\x03\x0a\x01a"),
        "payload with the last microsecond": wrap_payload(chess, message(at=LAST).SerializeToString()),
        "payload with the first second": wrap_payload(chess, message(at=FIRST).SerializeToString()),
        "empty payload": wrap_payload(chess, b""),
        "payload with a field that nobody knows": wrap_payload(chess, good + b"\x78\x01"),
    } | {f"game {name}": wrapper(name, schema_id, message(name=name).SerializeToString()) for name in NAMES}
    root.send(list(records.values()))
    root.run()
    return Sent(root, tuple(records), message)


EVENT = """
    syntax = "proto3";
    package test;
    import "google/protobuf/timestamp.proto";
    message Event { string name = 1; int64 score = 2; google.protobuf.Timestamp at = 3; }
"""
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, timezone.utc)
FIRST = datetime(1, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("label", "cause", "sentence"),
    [
        ("null", "MALFORMED_WRAPPER", "The record has no value."),
        ("no wrapper", "MALFORMED_WRAPPER", "Error parsing message with type 'demux.Wrapper'"),
        ("truncated wrapper", "MALFORMED_WRAPPER", "Error parsing message with type 'demux.Wrapper'"),
        (
            "wrapper with a game name that is not UTF-8",
            "MALFORMED_WRAPPER",
            "Error parsing message with type 'demux.Wrapper'",
        ),
        ("empty wrapper", "INVALID_GAME_NAME", "The game name is empty."),
        ("empty name", "INVALID_GAME_NAME", "The game name is empty."),
        ("name of 81 bytes", "INVALID_GAME_NAME", "The game name has 81 bytes in UTF-8; at most 80 are allowed."),
        (
            "name of 27 characters in 81 bytes",
            "INVALID_GAME_NAME",
            "The game name has 81 bytes in UTF-8; at most 80 are allowed.",
        ),
        (
            "name with a line feed",
            "INVALID_GAME_NAME",
            "The game name has a control character (U+000A) at position 3.",
        ),
        ("name with a zero", "INVALID_GAME_NAME", "The game name has a control character (U+0000) at position 3."),
        (
            "name that is the NULL of folders",
            "INVALID_GAME_NAME",
            "The game name is __HIVE_DEFAULT_PARTITION__, which means NULL in a folder name.",
        ),
        ("name of white space", "INVALID_GAME_NAME", "The game name has only white space."),
    ],
)
def test_a_record_that_is_no_wrapper_or_names_no_game_keeps_its_bytes(
    sent: Sent, label: str, cause: str, sentence: str
) -> None:
    row = sent.quarantined(label)
    assert (row["stage"], row["cause"]) == ("bronze", cause)
    assert row["sentence"].startswith(sentence)
    assert row["bytes"] == sent.root.source()[sent.labels.index(label)]["value"]


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        ("wrapper without a schema id", "The record has no schema id."),
        ("unknown schema id", "The registry in ROOT/registry has no schema 4711."),
        ("schema id 0", "Schema id 0 is not positive."),
        ("negative schema id", "Schema id -3 is not positive."),
    ],
)
def test_a_schema_id_that_has_no_schema_is_said(sent: Sent, label: str, sentence: str) -> None:
    row = sent.quarantined(label)
    assert (row["stage"], row["cause"], row["game_name"]) == ("silver", "UNKNOWN_SCHEMA", "chess")
    assert row["sentence"] == sentence.replace("ROOT", str(sent.root.folder))
    assert row["bytes"] == sent.message(**GOOD).SerializeToString()


@pytest.mark.parametrize("label", ["truncated payload", "payload with a name that is not UTF-8"])
def test_a_malformed_payload_has_the_sentence_of_the_reference_parser(sent: Sent, label: str) -> None:
    row = sent.quarantined(label)
    with pytest.raises(DecodeError) as refused:
        sent.message.FromString(row["bytes"])
    assert (row["stage"], row["cause"], row["sentence"]) == ("silver", "MALFORMED_PAYLOAD", str(refused.value))
    assert row["sentence"].startswith("Error parsing message with type 'test.Event'")


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        (
            "payload with a name that is a number",
            "Field 1 (name) of 'test.Event' has the wrong wire type: varint",
        ),
        (
            "payload with a wrong type inside",
            "Field 1 (seconds) of 'google.protobuf.Timestamp' has the wrong wire type: length-delimited",
        ),
        (
            "payload with a time in year 146 billion",
            "Timestamp is out of range: 4611686018427387904 seconds, 0 nanos",
        ),
        ("payload with a nanosecond too many", "Timestamp is out of range: 0 seconds, 1000000000 nanos"),
    ],
)
def test_a_value_that_has_no_place_in_its_column_makes_a_payload_malformed(
    sent: Sent, label: str, sentence: str
) -> None:
    row = sent.quarantined(label)
    assert (row["stage"], row["cause"], row["sentence"]) == ("silver", "MALFORMED_PAYLOAD", sentence)


@pytest.mark.parametrize(
    "label", ["good", "wrapper with a field that nobody knows", "payload with a field that nobody knows"]
)
def test_good_rows_of_the_same_batch_arrive(sent: Sent, label: str) -> None:
    row = sent.silver(label)
    assert (row["name"], row["score"], row["at"], row["_schema_id"]) == ("ann", -7, None, 1)


@pytest.mark.parametrize("label", ["empty payload", "wrapper without a payload"])
def test_an_empty_payload_is_a_row_of_defaults(sent: Sent, label: str) -> None:
    row = sent.silver(label)
    assert (row["name"], row["score"], row["at"]) == ("", 0, None)


def test_the_first_and_the_last_moment_of_a_timestamp_are_kept_to_the_microsecond(sent: Sent) -> None:
    assert sent.silver("payload with the first second")["at"] == FIRST
    assert sent.silver("payload with the last microsecond")["at"] == LAST


@pytest.mark.parametrize("name", NAMES)
def test_each_hostile_name_has_a_table_of_its_own(sent: Sent, name: str) -> None:
    row = sent.silver(f"game {name}", game=name)
    assert row["name"] == name
    found: Rows = [row for row in sent.root.silver(name) if row["name"] != name]
    assert name == "chess" or found == []


def test_all_tables_are_below_the_root(sent: Sent) -> None:
    keys = {names_of(name).key for name in NAMES}
    assert len(keys) == len(NAMES)
    assert {path.name for path in (sent.root.folder / "silver").iterdir()} == keys
    assert [path.name for path in sent.root.folder.parent.iterdir()] == ["root"]


def test_every_record_of_the_batch_is_in_exactly_one_place(sent: Sent) -> None:
    ids = [row["record_id"] for row in sent.root.quarantine()]
    ids += [row["_record_id"] for name in NAMES for row in sent.root.silver(name)]
    assert sorted(ids) == sorted(f"t/0/{place}" for place in range(len(sent.labels)))
