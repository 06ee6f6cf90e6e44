"""Message types of installed packages through the whole spine, by every engine and decoder, against `google.protobuf`.

Each type is a game. The newer version of its schema comes first: records of the older one come later in the same batch,
or, of every fourth game, in a later one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.corpus.installed import TYPES
from tests.support.flow.corpus import (
    SUITED,
    Way,
    mistakes,
    mixed,
    records_of,
    refused,
    registered,
    run_of,
    sent_to,
    ways,
)
from tests.support.flow.process import Command

UNKNOWN = 999_999
# of both syntaxes, with JSON text, maps of messages and closed enums
BY_STREAMS = (
    "onnx.TensorProto",
    "SC2APIProtocol.Action",
    "google.api.Distribution",
    "google.protobuf.FileDescriptorProto",
)


@pytest.mark.parametrize("way", ways(fleet=tuple(TYPES), stream=BY_STREAMS, from_protobuf=SUITED), ids=str)
def test_every_record_of_the_corpus_becomes_what_google_protobuf_says(
    way: Way, spark: SparkSession, tmp_path: Path, command: Command
) -> None:
    sent = sent_to(way, spark, tmp_path)
    made = {version: records_of(version, id) for version, id in registered(sent.root.registry, way.games).items()}
    newer = [records for version, records in made.items() if version.number == 2]
    older = [records for version, records in made.items() if version.number == 1]
    unknown = [refused(game, UNKNOWN, b"", "UNKNOWN_SCHEMA") for game in way.games]

    sent.send([*unknown, *mixed(1, *newer), *mixed(2, *(each for at, each in enumerate(older) if at % 4))])
    run_of(sent.root, command)
    assert mistakes(sent) == []
    sent.send(mixed(3, *older[::4], *(each[:5] for each in newer)))
    run_of(sent.root, command)
    assert mistakes(sent) == []
