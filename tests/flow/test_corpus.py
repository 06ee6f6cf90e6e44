"""Message types of installed packages through the whole spine, by every engine and decoder, against `google.protobuf`.

Each type is a game. The newer version of its schema comes first, the older one in a later round.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.corpus.installed import TYPES
from tests.corpus.versions import versions_of
from tests.flow.corpus import SUITED, Way, mistakes, mixed, records_of, refused, registered, run_of, sent_to, ways
from tests.flow.process import Command

UNKNOWN = 999_999
# of both syntaxes, with recursion, Any, maps of messages and closed enums
BY_STREAMS = (
    "SC2APIProtocol.Action",
    "google.api.Distribution",
    "google.gapic.metadata.GapicMetadata",
    "onnx.TensorProto",
)


@pytest.mark.parametrize("way", ways(fleet=tuple(TYPES), stream=BY_STREAMS, from_protobuf=SUITED), ids=str)
def test_every_record_of_the_corpus_becomes_what_google_protobuf_says(
    way: Way, spark: SparkSession, tmp_path: Path, command: Command
) -> None:
    sent = sent_to(way, spark, tmp_path)
    ids = registered(sent.root.registry, way.games)
    made = {version: records_of(version, schema_id) for version, schema_id in ids.items()}
    older, newer = zip(*(versions_of(game) for game in way.games), strict=True)
    unknown = [refused(game, UNKNOWN, b"", "UNKNOWN_SCHEMA") for game in way.games]

    sent.send(mixed(1, unknown, *(made[version] for version in newer)))
    run_of(sent.root, command)
    assert mistakes(sent) == []
    sent.send(mixed(2, *(made[version] for version in older), *(made[version][:5] for version in newer)))
    run_of(sent.root, command)
    assert mistakes(sent) == []
