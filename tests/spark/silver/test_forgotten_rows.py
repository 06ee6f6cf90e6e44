"""Rows that are forgotten leave the files, also of tables whose deletes would only hide them."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import cast

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.causes import Cause, Stage
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.schemas.store import SchemaStore
from demux.core.tables import DROPPED, FORGET, REMOVED
from demux.operations.erasure.requests import ErasureRequest, carry_out
from demux.operations.erasure.results import ALL_READ, RemovedRows
from demux.operations.erasure.search import SearchScope, search_game, session_of
from demux.operations.predicate.parser import parse
from tests.support.spark.tables import position, read, write

GAME = "x' OR `1`=1; %_../"
NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def test_no_row_is_only_hidden_by_a_deletion_vector_and_none_counts_as_anything_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    layout = Layout(str(tmp_path / "root"))
    table = layout.silver(names_of(GAME).key)
    rows = spark.range(100).select(F.format_string("t/0/%d", "id").alias("_record_id"), F.col("id").alias("score"))
    rows.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(table)
    before = spark.read.format("delta").load(table).inputFiles()
    found = SearchScope(
        session_of(spark), layout, cast(SchemaStore, None), parse("score IN (3, 5)"), unreadable_too=False
    )
    with search_game(found, GAME, ALL_READ) as search:
        assert (search.result.silver, search.result.table_rows, search.rows is None) == (2, 100, False)
    gone = {**position(5), "record_id": "t/0/5", "game_name": GAME, "request": "a", "removed_at": NOW}
    other = {**gone, "record_id": "t/0/6"}
    why = [(gone, "forgotten"), (gone, "retired"), (other, "retired")]
    write(layout.removed, REMOVED, [{**row, "reason": reason} for row, reason in why])
    set_aside = {"stage": Stage.SILVER.value, "cause": Cause.UNKNOWN_SCHEMA.value}
    write(layout.dropped, DROPPED, [{**gone, **set_aside}, {**other, **set_aside}])
    removed = carry_out(spark, layout, ErasureRequest("a", GAME), ALL_READ)
    assert removed == RemovedRows("a", GAME, 1, 0, 0)
    after = spark.read.format("delta").load(table)
    assert sorted(row.score for row in after.collect()) == sorted({*range(100)} - {5})
    assert set(before) & set(after.inputFiles()) == set()
    commits = [file.read_text() for file in Path(table, "_delta_log").glob("*.json")]
    assert not any('"deletionVector"' in text for text in commits)
    # that it is forgotten is all that is on record of it
    assert read(layout.removed, "record_id", "reason") == [("t/0/5", "forgotten"), ("t/0/6", "retired")]
    assert read(layout.dropped, "record_id") == [("t/0/6",)]
    # a second one finds nothing to do
    assert carry_out(spark, layout, ErasureRequest("a", GAME), ALL_READ) == RemovedRows("a", GAME, 0, 0, 0)
    assert read(layout.forget, *(column.name for column in FORGET))[0][:2] == ("a", GAME)
