"""Bronze again from a broker: only where the broker still has all that bronze has, unless told otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bronze_ingest.rebuild import rebuild_bronze
from demux.core.errors import OffsetsLost
from demux.core.reports import IngestReport
from demux.core.settings.settings import Settings
from tests.support.kafka.intake import Intake, of_chess
from tests.support.kafka.records import Record, forget, make_topic, put
from tools.servers.broker import Broker


def test_a_rebuild_that_would_lose_records_is_refused_until_they_are_given_up(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    make_topic(broker.bootstrap, "rebuilt", 2)
    records = [Record(of_chess(b"%d" % number), partition=number % 2) for number in range(6)]
    put({"bootstrap.servers": broker.bootstrap}, "rebuilt", *records)
    root = Intake.at(spark, tmp_path, broker.bootstrap, "rebuilt")
    settings = Settings.model_validate({"root": root.layout.root, "source": {"kind": "kafka"}, "kafka": root.kafka})
    root.ingest()
    all_rows = root.bronze()
    assert rebuild_bronze(spark, settings) == IngestReport(6, 6, 0)
    assert root.bronze() == all_rows

    forget(broker.bootstrap, "rebuilt", {1: 2})
    with pytest.raises(OffsetsLost) as refused:
        rebuild_bronze(spark, settings)
    assert refused.value.message == (
        "A rebuild would lose records that the source does not have any more: "
        "topic rebuilt, partition 1: offsets 0 to 1."
    )
    assert "--accept-gaps" in refused.value.remedy
    assert root.bronze() == all_rows
    assert rebuild_bronze(spark, settings, accept_gaps=True) == IngestReport(4, 4, 0)
    assert [row for row in all_rows if row not in root.bronze()] == [("rebuilt/1/0", b"1"), ("rebuilt/1/1", b"3")]
