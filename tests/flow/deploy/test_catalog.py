"""The tables of a root registered in a real catalog: the session's own, which forgets everything with the session."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.cli.deploy.local_plan import list_parts, remove_parts
from demux.core.control.games_and_rounds import TaskOutcome
from demux.core.errors import CatalogConflict, CatalogRefused
from demux.core.names import names_of
from install_workflow.destroy.apply import list_removable
from install_workflow.destroy.plan import RootPart
from tests.support.flow.fleet import FLEET, STREAM
from tests.support.flow.root import Root, wrapper

HOSTILE = "a'b; drop table x `${env:HOME}`"
COMMENTED = """syntax = "proto3";
// One event.
message Event {
  string name = 1; // who
}"""
CATALOG = {"catalog": "spark_catalog", "bronze": "demux_b", "silver": "demux_s"}


@pytest.fixture
def cataloged(spark: SparkSession, tmp_path: Path) -> Iterator[Root]:
    """A root with a name that must be quoted, in a catalog that has nothing of it."""
    yield Root.at(spark, tmp_path / "it's a `root`", tables=CATALOG)
    for schema in ("demux_b", "demux_s"):
        spark.sql(f"DROP SCHEMA IF EXISTS spark_catalog.{schema} CASCADE")


def send(root: Root, *games: str) -> None:
    for number, game in enumerate(games):
        schema_id = root.register(game, COMMENTED)
        payload = root.message(schema_id)(name="ann").SerializeToString()
        root.send([wrapper(game, schema_id, payload), wrapper(game, 99, payload)], first_offset=2 * number)


def tables(spark: SparkSession, schema: str) -> list[str]:
    return sorted(row.tableName for row in spark.sql(f"SHOW TABLES IN spark_catalog.{schema}").collect())


@pytest.mark.both_lanes
def test_every_table_can_be_read_by_its_name_after_a_round(cataloged: Root, spark: SparkSession) -> None:
    send(cataloged, "chess", HOSTILE)
    place = cataloged.workplace()
    cataloged.run(place)
    key = names_of(HOSTILE).key
    assert tables(spark, "demux_s") == sorted(["chess", key])
    assert [row.name for row in spark.table("spark_catalog.demux_s.chess").collect()] == ["ann"]
    assert spark.table(f"spark_catalog.demux_s.{key}").count() == 1
    described = spark.sql("DESCRIBE TABLE EXTENDED spark_catalog.demux_s.chess").collect()
    said = {row.col_name: (row.data_type, row.comment) for row in described}
    assert said["name"] == ("string", "who")
    assert said["Comment"][0] == "One event."
    # quarantine came after bronze was registered: the next round makes it known, and the control tables
    assert tables(spark, "demux_b") == ["bronze"]
    cataloged.run(place)
    names = ["bronze", "control_games", "control_rounds", "control_schemas", "quarantine"]
    assert tables(spark, "demux_b") == names
    assert spark.table("spark_catalog.demux_b.bronze").count() == 4


@pytest.mark.parametrize(
    "engine", [pytest.param(STREAM, id="stream", marks=pytest.mark.oldest), pytest.param(FLEET, id="fleet")]
)
def test_a_second_run_finds_everything_registered_and_new_rows_under_the_name(
    cataloged: Root, spark: SparkSession, engine: Mapping[str, object]
) -> None:
    cataloged = Root.at(spark, cataloged.folder, tables=CATALOG, run=engine)
    send(cataloged, "chess")
    cataloged.run()
    send(cataloged, "chess")
    round_ = cataloged.run()
    assert [end.error for end in round_.ended] == [None]
    assert spark.table("spark_catalog.demux_s.chess").count() == 2


def test_a_table_of_that_name_elsewhere_is_left_and_told_and_the_rows_are_in(
    cataloged: Root, spark: SparkSession, tmp_path: Path
) -> None:
    send(cataloged, "chess", "go")
    theirs = tmp_path / "theirs"
    spark.range(3).write.format("delta").save(str(theirs))
    spark.sql("CREATE SCHEMA spark_catalog.demux_s")
    spark.sql(f"CREATE TABLE spark_catalog.demux_s.chess USING DELTA LOCATION '{theirs}'")
    ended = {end.task.game: end.error for end in cataloged.run().ended}
    conflict = ended["chess"]
    assert isinstance(conflict, CatalogConflict)
    path = cataloged.silver_path("chess")
    assert conflict.message == (
        f"The catalog has a spark_catalog.demux_s.chess already at file:{theirs}, and this one is at {path}."
    )
    assert ended["go"] is None
    assert spark.table("spark_catalog.demux_s.chess").count() == 3
    assert [row["name"] for row in cataloged.silver("chess")] == ["ann"]
    assert cataloged.workplace().control.history().last["chess"].outcome is TaskOutcome.FAILED

    spark.sql("DROP TABLE spark_catalog.demux_s.chess")
    # nothing new came, and the game is looked at again
    assert [(end.task.game, end.error) for end in cataloged.run().ended] == [("chess", None)]
    assert spark.table("spark_catalog.demux_s.chess").count() == 1


def test_a_view_of_that_name_is_left_too(cataloged: Root, spark: SparkSession) -> None:
    send(cataloged, "chess")
    spark.sql("CREATE SCHEMA spark_catalog.demux_s")
    spark.sql("CREATE VIEW spark_catalog.demux_s.chess AS SELECT 1 AS one")
    (end,) = cataloged.run().ended
    assert isinstance(end.error, CatalogConflict)
    assert spark.table("spark_catalog.demux_s.chess").columns == ["one"]


def test_a_catalog_that_refuses_fails_the_games_task_and_holds_up_nothing(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("demux"), "propagate", True)
    root = Root.at(spark, tmp_path / "root", tables={"catalog": "nowhere"})
    send(root, "chess")
    (end,) = root.run().ended
    assert isinstance(end.error, CatalogRefused)
    assert end.error.message.startswith("The catalog did not register nowhere.silver.chess: ")
    assert end.error.remedy.endswith("give `--set tables.catalog=null`.")
    assert "The catalog did not register nowhere.bronze.bronze: " in caplog.text
    assert [row["name"] for row in root.silver("chess")] == ["ann"]
    # the setting is corrected: the task that failed is due again
    healed = Root.at(spark, tmp_path / "root")
    assert [end.error for end in healed.run().ended] == [None]


def test_without_a_catalog_nothing_is_registered(root: Root, spark: SparkSession) -> None:
    send(root, "chess")
    root.run()
    assert [row.namespace for row in spark.sql("SHOW SCHEMAS IN spark_catalog").collect()] == ["default"]


def test_a_table_that_is_removed_is_forgotten_and_another_of_that_name_is_not(
    cataloged: Root, spark: SparkSession, tmp_path: Path
) -> None:
    send(cataloged, "chess", "go")
    cataloged.run()
    theirs = tmp_path / "theirs"
    spark.range(3).write.format("delta").save(str(theirs))
    spark.sql("DROP TABLE spark_catalog.demux_s.go")
    spark.sql(f"CREATE TABLE spark_catalog.demux_s.go USING DELTA LOCATION '{theirs}'")
    place = cataloged.workplace()
    found = list_removable(spark, place.settings, place.control, {RootPart.TABLES})
    remove_parts(place, found)
    assert not (cataloged.folder / "silver" / "chess").exists()
    assert not (cataloged.folder / "bronze").exists()
    assert tables(spark, "demux_b") == []
    assert tables(spark, "demux_s") == ["go"]
    assert spark.table("spark_catalog.demux_s.go").count() == 3


def test_a_spark_without_the_catalog_removes_nothing_until_the_catalog_is_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    plain = Root.at(spark, tmp_path / "root")
    send(plain, "chess")
    plain.run()
    place = Root.at(spark, tmp_path / "root", tables={"catalog": "nowhere"}).workplace()
    with pytest.raises(CatalogRefused, match="so nothing was removed") as refused:
        list_parts(place, frozenset(RootPart))
    assert refused.value.remedy.endswith("give `--set tables.catalog=null`.")
    assert not Path(plain.layout.removal).exists()
    assert len(plain.silver("chess")) == 1
    # checkpoints are in no catalog
    assert {folder.part for folder in list_parts(place, frozenset({RootPart.CHECKPOINTS}))} == {RootPart.CHECKPOINTS}
    assert {folder.part for folder in list_parts(plain.workplace(), frozenset(RootPart))} == set(RootPart)
