"""Message types of installed packages in two versions: straight and bent messages against `google.protobuf`."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from demux.core.protobuf.decode.decoder import decoder_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.protocol import RegisteredSchema
from demux.core.tables import SILVER_RESERVED
from tests.corpus.judge import Judge
from tests.corpus.texts import schema_of
from tests.corpus.versions import VERSIONS, Version
from tests.support.data.messages import payloads
from tests.support.data.mutations import mutated
from tests.support.data.proto_text import comparable
from tests.support.oracle import arrow_rows, difference


@cache
def judge_of(version: Version) -> Judge:
    return Judge(version, SILVER_RESERVED)


def straight(version: Version, seed: int, count: int) -> list[bytes]:
    return payloads(version.type, seed, count, density=0.4)


def bent(version: Version, seed: int, count: int) -> list[bytes]:
    descriptor: Any = version.type.DESCRIPTOR
    rng = random.Random(f"{version} {seed}")
    made = straight(version, seed, 15)
    return [mutated(rng.choice(made), descriptor, rng) for _ in range(count)]


def check(version: Version, made: list[bytes]) -> None:
    """The decoder takes what the judge takes, with equal rows, and keeps what is unknown."""
    cases = [(payload, judge_of(version).verdict(payload)) for payload in made]
    by = decoder_of(version.descriptor_set, version.message, SILVER_RESERVED)
    decoded = by.decode(made)
    refused = dict(decoded.bad)
    assert sorted([*decoded.good, *refused]) == list(range(len(made)))
    wrong = [
        (payload.hex(), verdict.why, refused.get(at))
        for at, (payload, verdict) in enumerate(cases)
        if (verdict.row is None) != (at in refused)
    ]
    assert wrong == []
    rows = arrow_rows(decoded.columns, [column.name for column in by.columns])
    left = by.rescued(made, decoded, by.columns).to_pylist()
    for at, row, rescued in zip(decoded.good, rows, left, strict=True):
        payload, verdict = cases[at]
        assert difference(verdict.row, row, f"{version} {payload.hex()}") is None
        assert (rescued is not None) == verdict.left_over, f"{version} {payload.hex()}"


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_messages_are_taken_or_refused_as_google_protobuf_and_the_column_rules_say(version: Version) -> None:
    check(version, straight(version, 41, 6) + bent(version, 42, 8))


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_no_straight_message_is_refused_and_many_bent_ones_are_read_alike(version: Version) -> None:
    made = straight(version, 43, 50)
    assert [why for payload in made if (why := judge_of(version).verdict(payload).why)] == []
    check(version, made + bent(version, 44, 150))


@pytest.mark.thorough
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_what_is_registered_compiles_to_the_file_of_the_version(version: Version) -> None:
    schema = schema_of(version, "any")
    compiled = compile_schema(
        RegisteredSchema(1, "any", 1, schema.text, schema.path, schema.references, schema.message)
    )
    by_name = {file.name: file for file in FileDescriptorSet.FromString(compiled.descriptor_set).file}
    brought = [file for file in version.files[:-1] if not file.name.startswith("google/protobuf/")]
    for file, name in ((version.file, schema.path), *((file, file.name) for file in brought)):
        assert comparable(by_name[name]) == comparable(file)
    assert compiled.message == version.message
