"""Rows that are forgotten leave the files, also of tables whose deletes would only hide them."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.forgetting.found import ALL_READ, Removed
from demux.forgetting.requests import Request, carry_out
from demux.names import names_of
from demux.tables import FORGET, REMOVED, Layout
from tests.spark.tables import position, read, write

GAME = "x' OR `1`=1; %_../"
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.one_lane
def test_no_row_is_only_hidden_by_a_deletion_vector(spark: SparkSession, tmp_path: Path) -> None:
    layout = Layout(str(tmp_path / "root"))
    table = layout.silver(names_of(GAME).key)
    rows = spark.range(100).select(F.format_string("t/0/%d", "id").alias("_record_id"), F.col("id").alias("score"))
    rows.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(table)
    before = spark.read.format("delta").load(table).inputFiles()
    gone = {**position(5), "record_id": "t/0/5", "game_name": GAME, "request": "a", "removed_at": NOW}
    write(
        layout.removed, REMOVED, [{**gone, "reason": "forgotten"}, {**gone, "reason": "retired", "record_id": "t/0/6"}]
    )
    removed = carry_out(spark, layout, Request("a", GAME), ALL_READ)
    assert removed == Removed("a", GAME, 1, 0, 0)
    after = spark.read.format("delta").load(table)
    assert sorted(row.score for row in after.collect()) == sorted({*range(100)} - {5})
    assert set(before) & set(after.inputFiles()) == set()
    commits = [file.read_text() for file in Path(table, "_delta_log").glob("*.json")]
    assert not any('"deletionVector"' in text for text in commits)
    # a second one finds nothing to do
    assert carry_out(spark, layout, Request("a", GAME), ALL_READ) == Removed("a", GAME, 0, 0, 0)
    assert read(layout.forget, *(column.name for column in FORGET))[0][:2] == ("a", GAME)
