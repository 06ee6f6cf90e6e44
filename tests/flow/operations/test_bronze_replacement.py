"""A game decoded again where Spark writes its table, or only Spark reads bronze."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

import deserializer.redecode.redecoder
from demux.core.errors import ConcurrentChange, RangeRetired, ServiceUnavailable
from demux.core.names import names_of, quote_identifier
from demux.core.reports import GameReport
from demux.core.root.layout import Layout
from demux.core.schemas.store import SchemaStore
from deserializer.offsets.days import DayCounts, Span
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.source import BronzeRows
from deserializer.silver.file_table import SilverReplacement, SilverTable
from tests.support.spark.registries import CountingRegistry, every_game
from tests.support.spark.tables import MOMENT, bronze_row, write_bronze

EVENT = 'syntax = "proto3"; package g; message Event { string name = 1; }'
ANN, BOB, BROKEN = b"\x0a\x03ann", b"\x0a\x03bob", b"\x0a\x03a"
HOSTILE = "a'b; drop table x"
DAY = MOMENT.date()


@pytest.fixture
def redecoder(spark: SparkSession, tmp_path: Path) -> Redecoder:
    layout, registry = Layout(str(tmp_path / "a root")), CountingRegistry()
    registry.register(HOSTILE, EVENT, "g/event.proto", ())
    rows = [bronze_row(HOSTILE, offset, 1, payload) for offset, payload in enumerate((ANN, BOB, BROKEN, ANN))]
    # a time that Spark's own kind of it has not
    rows[1]["timestamp"] = MOMENT.replace(year=9999)
    write_bronze(layout.bronze, *rows)
    write_bronze(layout.bronze, bronze_row(HOSTILE, 4, 1, BOB), bronze_row("go", 0, 1, ANN))
    return Redecoder(spark, layout, SchemaStore(spark, layout, every_game(registry)))


def silver(redecoder: Redecoder) -> list[tuple[str, str, int | None]]:
    rows = redecoder.spark.read.format("delta").load(redecoder.layout.silver(names_of(HOSTILE).key))
    return sorted((row._record_id, row.name, row._timestamp.year) for row in rows.collect())


def quarantined(redecoder: Redecoder) -> list[str]:
    rows = redecoder.spark.read.format("delta").load(redecoder.layout.quarantine)
    return sorted(row.record_id for row in rows.collect())


def newest(redecoder: Redecoder, span: Span | None) -> BronzeRows:
    version = redecoder.spark.sql(f"DESCRIBE HISTORY delta.{quote_identifier(redecoder.layout.bronze)}").first()
    assert version is not None
    return BronzeRows(HOSTILE, version["version"], span)


def delete_by_vector(redecoder: Redecoder, condition: str) -> None:
    """Hide rows of bronze, which are in its files still."""
    bronze = quote_identifier(redecoder.layout.bronze)
    redecoder.spark.sql(f"ALTER TABLE delta.{bronze} SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    redecoder.spark.sql(f"DELETE FROM delta.{bronze} WHERE {condition}")


def test_rows_that_a_deletion_vector_hides_in_bronze_are_not_decoded(redecoder: Redecoder) -> None:
    delete_by_vector(redecoder, "record_id = 't/0/3'")
    assert rebuild(redecoder, HOSTILE) == GameReport(HOSTILE, 4, 3, 1, (1,))
    everything = [("t/0/0", "ann", 2025), ("t/0/1", "bob", 9999), ("t/0/4", "bob", 2025)]
    assert (silver(redecoder), quarantined(redecoder)) == (everything, ["t/0/2"])
    done = redecoder.replace(newest(redecoder, Span(DAY, DAY)), "again")
    assert done.counts == {DAY: DayCounts(3, 2, 1)}
    assert (silver(redecoder), quarantined(redecoder)) == (everything, ["t/0/2"])
    # what was copied of bronze is gone
    assert not list(Path(redecoder.layout.bronze).glob("redecode-*"))


def test_a_record_that_is_hidden_in_bronze_and_that_silver_has_is_not_lost(redecoder: Redecoder) -> None:
    rebuild(redecoder, HOSTILE)
    before = silver(redecoder)
    delete_by_vector(redecoder, "record_id = 't/0/3'")
    with pytest.raises(RangeRetired):
        rebuild(redecoder, HOSTILE)
    assert silver(redecoder) == before
    rebuild(redecoder, HOSTILE, accept_loss=True)
    assert len(silver(redecoder)) == len(before) - 1


def test_a_commit_without_an_answer_keeps_its_files_and_one_that_lost_to_a_rival_leaves_none(
    redecoder: Redecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuild(redecoder, HOSTILE)
    folder, before = Path(redecoder.layout.silver(names_of(HOSTILE).key)), silver(redecoder)
    replace = SilverTable.replace

    def without_an_answer(table: SilverTable, replacement: SilverReplacement) -> None:
        replace(table, replacement)
        raise ServiceUnavailable("The store does not answer.", "Run the same command again.")

    def lost(table: SilverTable, replacement: SilverReplacement) -> None:
        assert all((folder / file.path).exists() for file in replacement.added)
        raise ConcurrentChange("Another process was first.", "Run the same command again.")

    monkeypatch.setattr(SilverTable, "replace", without_an_answer)
    with pytest.raises(ServiceUnavailable):
        redecoder.replace(newest(redecoder, Span(DAY, DAY)), "again")
    assert silver(redecoder) == before
    files = {*folder.rglob("*.parquet")}
    monkeypatch.setattr(SilverTable, "replace", lost)
    with pytest.raises(ConcurrentChange):
        redecoder.replace(newest(redecoder, Span(DAY, DAY)), "third")
    assert (silver(redecoder), {*folder.rglob("*.parquet")}) == (before, files)


@pytest.mark.both_lanes
def test_a_constraint_of_the_table_is_checked_and_a_row_that_breaks_it_changes_nothing(redecoder: Redecoder) -> None:
    rebuild(redecoder, HOSTILE)
    table = redecoder.layout.silver(names_of(HOSTILE).key)
    before = silver(redecoder)
    redecoder.spark.sql(f"ALTER TABLE delta.{quote_identifier(table)} ADD CONSTRAINT short CHECK (length(name) < 4)")
    source = newest(redecoder, Span(DAY, DAY))
    assert redecoder.replace(source, "again").counts == {DAY: DayCounts(4, 3, 1)}
    assert silver(redecoder) == before
    write_bronze(redecoder.layout.bronze, bronze_row(HOSTILE, 5, 1, b"\x0a\x04anna"))
    # Delta says so of any row that a constraint refuses in a write with `replaceWhere`
    with pytest.raises(Exception, match=r"(?i)replace_?where"):
        redecoder.replace(newest(redecoder, Span(DAY, DAY)), "third")
    assert silver(redecoder) == before


@pytest.mark.both_lanes
def test_a_generated_column_of_the_table_is_filled_where_spark_copies_the_rows(redecoder: Redecoder) -> None:
    rebuild(redecoder, HOSTILE)
    spark, table = redecoder.spark, redecoder.layout.silver(names_of(HOSTILE).key)
    rows = spark.read.format("delta").load(table)
    kept = rows.collect()
    shutil.rmtree(table)
    made = DeltaTable.create(spark).location(table).addColumns(rows.schema)
    made.addColumn("_year", "INT", generatedAlwaysAs="YEAR(_timestamp)").execute()
    spark.createDataFrame(kept, rows.schema).write.format("delta").mode("append").save(table)
    for again in ("again", "once more"):
        done = redecoder.replace(newest(redecoder, Span(DAY, DAY)), again)
        assert done.counts == {DAY: DayCounts(4, 3, 1)}
    found = spark.read.format("delta").load(table).select("_record_id", "name", "_year").collect()
    assert sorted(tuple(row) for row in found) == silver(redecoder)


def test_a_game_that_is_too_large_for_one_task_is_decoded_by_several(
    redecoder: Redecoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deserializer.redecode.redecoder, "_MOST_BYTES", 0)
    for _ in range(2):
        assert rebuild(redecoder, HOSTILE) == GameReport(HOSTILE, 5, 4, 1, (1,))
        assert [one for one, _, _ in silver(redecoder)] == ["t/0/0", "t/0/1", "t/0/3", "t/0/4"]
        assert quarantined(redecoder) == ["t/0/2"]
