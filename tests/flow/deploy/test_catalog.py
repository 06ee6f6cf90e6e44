"""The tables of a root registered in a real catalog: the session's own, which forgets everything with the session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bronze_ingest.rebuild import rebuild_bronze
from demux.cli.deploy.local_plan import list_parts, remove_parts
from demux.core.control.games_and_rounds import TaskOutcome
from demux.core.errors import CatalogConflict, CatalogRefused, TableLost
from demux.core.names import names_of
from demux.core.settings.settings import Sink
from demux.operations.quarantine.filter import QuarantineFilter
from deserializer.redecode.redecoder import Redecoder, rebuild
from deserializer.redecode.replay import replay
from install_workflow.destroy.apply import list_removable
from install_workflow.destroy.plan import RootPart
from tests.support.flow.fleet import FLEET, STREAM, without_errors
from tests.support.flow.root import Root, wrapper

HOSTILE = "a'b; drop table x `${env:HOME}`"
COMMENTED = """syntax = "proto3";
// One event.
message Event {
  string name = 1; // who
  int32 score = 2;
}"""
WIDER = """syntax = "proto3";
// One event.
message Event {
  string name = 1; // who
  int64 score = 2;
  string more = 3;
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


CONTROL = (
    "approvals",
    "backfills",
    "deployments",
    "dropped",
    "forget",
    "games",
    "gaps",
    "removed",
    "rounds",
    "schemas",
    "topics",
)
OF_BRONZE = sorted(["bronze", "quarantine", *(f"control_{name}" for name in CONTROL)])


@pytest.mark.both_lanes
def test_every_table_has_its_name_and_is_read_by_it_after_a_round(cataloged: Root, spark: SparkSession) -> None:
    send(cataloged, "chess", HOSTILE)
    cataloged.run()
    key = names_of(HOSTILE).key
    assert tables(spark, "demux_s") == sorted(["chess", key])
    assert [row.name for row in spark.table("spark_catalog.demux_s.chess").collect()] == ["ann"]
    assert spark.table(f"spark_catalog.demux_s.{key}").count() == 1
    described = spark.sql("DESCRIBE TABLE EXTENDED spark_catalog.demux_s.chess").collect()
    said = {row.col_name: (row.data_type, row.comment) for row in described}
    assert said["name"] == ("string", "who")
    assert said["Comment"][0] == "One event."
    assert tables(spark, "demux_b") == OF_BRONZE
    assert spark.table("spark_catalog.demux_b.bronze").count() == 4
    assert spark.table("spark_catalog.demux_b.quarantine").count() == 2
    assert {row.game_name for row in spark.table("spark_catalog.demux_b.control_rounds").collect()} == {
        "chess",
        HOSTILE,
    }
    detail = spark.sql("DESCRIBE DETAIL demux_b.bronze").first()
    assert detail is not None
    assert detail.partitionColumns == ["game_name"]


def test_quarantine_and_control_tables_may_have_schemas_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    apart = {**CATALOG, "quarantine": "demux_q", "control": "demux_c"}
    root = Root.at(spark, tmp_path / "root", tables=apart)
    send(root, "chess")
    root.run()
    try:
        assert tables(spark, "demux_b") == ["bronze"]
        assert tables(spark, "demux_q") == ["quarantine"]
        assert tables(spark, "demux_c") == sorted(f"control_{name}" for name in CONTROL)
    finally:
        for schema in ("demux_b", "demux_s", "demux_q", "demux_c"):
            spark.sql(f"DROP SCHEMA IF EXISTS spark_catalog.{schema} CASCADE")


@pytest.mark.parametrize(
    "engine", [pytest.param(STREAM, id="stream", marks=pytest.mark.oldest), pytest.param(FLEET, id="fleet")]
)
def test_a_second_run_adds_rows_under_the_names_also_where_the_catalog_forgot_them(
    cataloged: Root, spark: SparkSession, engine: Mapping[str, object]
) -> None:
    cataloged = Root.at(spark, cataloged.folder, tables=CATALOG, run=engine)
    send(cataloged, "chess")
    cataloged.run()
    for number in (2, 3):
        send(cataloged, "chess")
        round_ = cataloged.run()
        assert [end.error for end in round_.ended] == [None]
        assert spark.table("spark_catalog.demux_s.chess").count() == number
        assert spark.table("spark_catalog.demux_b.quarantine").count() == number
        # as Spark's own catalog does when its process ends
        for schema in ("demux_b", "demux_s"):
            spark.sql(f"DROP SCHEMA spark_catalog.{schema} CASCADE")


@pytest.mark.both_lanes
def test_a_root_that_had_no_catalog_gets_its_names_with_the_next_rows(cataloged: Root, spark: SparkSession) -> None:
    before = Root.at(spark, cataloged.folder)
    send(before, "chess")
    before.run()
    send(cataloged, "chess")
    assert [end.error for end in cataloged.run().ended] == [None]
    assert tables(spark, "demux_b") == OF_BRONZE
    assert spark.table("spark_catalog.demux_s.chess").count() == 2


@pytest.mark.parametrize(
    "engine", [pytest.param(STREAM, id="stream", marks=pytest.mark.oldest), pytest.param(FLEET, id="fleet")]
)
def test_a_table_of_that_name_elsewhere_is_left_and_the_games_rows_wait_in_bronze(
    cataloged: Root, spark: SparkSession, tmp_path: Path, engine: Mapping[str, object]
) -> None:
    cataloged = Root.at(spark, cataloged.folder, tables=CATALOG, run={"retry_wait_s": 0.0, **engine})
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
    assert cataloged.silver("chess") == []
    assert [row["game_name"] for row in cataloged.quarantine()] == ["go"]
    assert cataloged.workplace().control.history().last["chess"].outcome is TaskOutcome.FAILED

    # another process does not write past the name either
    assert [isinstance(end.error, CatalogConflict) for end in cataloged.run().ended] == [True]
    assert cataloged.silver("chess") == []

    spark.sql("DROP TABLE spark_catalog.demux_s.chess")
    # nothing new came, and the game is looked at again
    assert [(end.task.game, end.error) for end in cataloged.run().ended] == [("chess", None)]
    assert spark.table("spark_catalog.demux_s.chess").count() == 1
    assert {row["game_name"] for row in cataloged.quarantine()} == {"go", "chess"}


def test_a_view_of_that_name_is_left_too(cataloged: Root, spark: SparkSession) -> None:
    send(cataloged, "chess")
    spark.sql("CREATE SCHEMA spark_catalog.demux_s")
    spark.sql("CREATE VIEW spark_catalog.demux_s.chess AS SELECT 1 AS one")
    (end,) = cataloged.run().ended
    assert isinstance(end.error, CatalogConflict)
    assert spark.table("spark_catalog.demux_s.chess").columns == ["one"]


@pytest.mark.parametrize("name", ["bronze", "quarantine", "control_rounds"])
def test_where_a_table_of_bronze_cannot_have_its_name_nothing_is_read(
    cataloged: Root, spark: SparkSession, tmp_path: Path, name: str
) -> None:
    send(cataloged, "chess")
    theirs = tmp_path / "theirs"
    spark.range(3).write.format("delta").save(str(theirs))
    spark.sql("CREATE SCHEMA spark_catalog.demux_b")
    spark.sql(f"CREATE TABLE spark_catalog.demux_b.{name} USING DELTA LOCATION '{theirs}'")
    with pytest.raises(CatalogConflict, match=f"has a spark_catalog.demux_b.{name} already"):
        cataloged.run()
    assert (cataloged.bronze(), cataloged.quarantine()) == ([], [])
    spark.sql(f"DROP TABLE spark_catalog.demux_b.{name}")
    assert [end.error for end in cataloged.run().ended] == [None]
    assert len(cataloged.bronze()) == 2


def test_a_catalog_that_refuses_ends_the_command_before_anything_is_read(spark: SparkSession, tmp_path: Path) -> None:
    root = Root.at(spark, tmp_path / "root", tables={"catalog": "nowhere"})
    send(root, "chess")
    with pytest.raises(CatalogRefused, match=r"^\[CATALOG_REFUSED\] The catalog did not register nowhere\.") as refused:
        root.run()
    assert refused.value.remedy.endswith("give `--set tables.catalog=null`.")
    assert (root.bronze(), root.silver("chess")) == ([], [])
    healed = Root.at(spark, tmp_path / "root")
    assert [end.error for end in healed.run().ended] == [None]
    assert [row["name"] for row in root.silver("chess")] == ["ann"]


def test_bronze_that_is_gone_is_noticed_and_not_made_again(cataloged: Root, spark: SparkSession) -> None:
    send(cataloged, "chess")
    cataloged.run()
    shutil.rmtree(cataloged.folder / "bronze")
    with pytest.raises(TableLost):
        cataloged.run()
    assert not (cataloged.folder / "bronze").exists()


def live(root: Root) -> None:
    """Write, widen, replay and decode again, each by another command, as Spark alone would."""
    send(root, "chess", HOSTILE)
    without_errors(root.run())
    wider = root.register("chess", WIDER)
    payload = root.message(wider)(name="ben", score=2**40, more="x").SerializeToString()
    root.send([wrapper("chess", wider, payload), wrapper("chess", 77, payload)], first_offset=10)
    without_errors(root.run())
    schemas = root.workplace().schemas
    assert replay(root.spark, root.layout, schemas, "chess", QuarantineFilter("chess"), Sink.SPARK).decoded == 0
    rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas, Sink.SPARK), HOSTILE)
    shutil.rmtree(root.silver_path("chess"))
    rebuild(Redecoder(root.spark, root.layout, root.workplace().schemas, Sink.SPARK), "chess")
    rebuild_bronze(root.spark, root.settings)
    without_errors(root.run())


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param({**STREAM, "sink": "spark"}, id="stream", marks=pytest.mark.oldest),
        pytest.param({**FLEET, "sink": "spark"}, id="fleet", marks=pytest.mark.long),
    ],
)
@pytest.mark.usefixtures("cataloged")
def test_everything_that_spark_writes_is_the_same_by_name_as_by_path(
    spark: SparkSession, tmp_path: Path, engine: Mapping[str, object]
) -> None:
    run = {"retry_wait_s": 0.0, **engine}
    by_path = Root.at(spark, tmp_path / "plain", run=run)
    # sentences name a registry, which is the same to us where its path has no spaces
    by_name = Root.at(spark, tmp_path / "named", tables=CATALOG, run=run)
    for root in (by_path, by_name):
        live(root)
    assert by_name.everything() == by_path.everything()
    assert [row.name for row in spark.table("spark_catalog.demux_s.chess").orderBy("_offset").collect()] == [
        "ann",
        "ben",
    ]
    assert spark.table("spark_catalog.demux_b.quarantine").count() == 3


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
