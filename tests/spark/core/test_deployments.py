"""The table of deployments: the installer's record, copied where bronze runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import Row, SparkSession

from demux.core.control.deployment_record import (
    DeploymentRecord,
    GamePlacement,
    InstallerClaim,
    RecordedGame,
    deployment_format,
)
from demux.core.control.deployments_table import copy_record, forget_deployment, has_deployment
from demux.core.control.record_format import file_of
from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.tables import DEPLOYMENTS

NOW = datetime(2025, 3, 30, 1, 59, 59, 123_456, tzinfo=timezone.utc)
HOSTILE = ["chess", "a'b; drop table x", "`${x}`", "象棋"]


def placed(game: str | None, key: str = "", cluster: str | None = "cluster_001") -> RecordedGame:
    key = key or names_of(game or "").key
    place = GamePlacement(key, game, "Game_Protobufs_wrapper_prod", 2**40, f"deserialize_{key}", cluster)
    return RecordedGame(place, "27af7553c72c", NOW)


def write(folder: Path, version: int, *games: RecordedGame, claim: InstallerClaim | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    deployment = folder.name.removeprefix("deployment.")
    (folder / file_of(version)).write_text(
        deployment_format(deployment).to_text(DeploymentRecord(games, claim)), encoding="utf-8"
    )


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(str(tmp_path / "root"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "wheels" / "deployment.prod"


def rows(spark: SparkSession, layout: Layout) -> list[Row]:
    table = spark.read.format("delta").load(layout.deployments)
    assert table.columns == [column.name for column in DEPLOYMENTS]
    return table.orderBy("deployment", "game_name").collect()


def games(spark: SparkSession, layout: Layout) -> list[tuple[str, str | None, int]]:
    return [(row.deployment, row.game_name, row.record_version) for row in rows(spark, layout)]


def versions(layout: Layout) -> int:
    return DeltaTable(layout.deployments).version() + 1


def test_the_newest_record_is_copied_once_whatever_the_games_names(
    spark: SparkSession, layout: Layout, folder: Path
) -> None:
    write(folder, 9, placed("old"))
    claim = InstallerClaim("ann@laptop", "1-a", "27af7553c72c", NOW, NOW + timedelta(minutes=15))
    write(folder, 10, *map(placed, HOSTILE), placed(None, "g__0123", cluster=None), claim=claim)
    (folder / "notes.txt").write_text("by hand")
    assert copy_record(spark, layout, folder)
    assert games(spark, layout) == [("prod", name, 10) for name in [None, *sorted(HOSTILE)]]
    row = next(row for row in rows(spark, layout) if row.game_name == "chess")
    assert (row.job, row.job_id, row.task) == ("Game_Protobufs_wrapper_prod", 2**40, "deserialize_chess")
    assert (row.cluster, row.plan_id) == ("cluster_001", "27af7553c72c")
    assert row.since.astimezone(timezone.utc) == NOW
    assert not copy_record(spark, layout, folder)
    assert versions(layout) == 1


def test_a_newer_record_replaces_the_rows_of_its_deployment_alone(
    spark: SparkSession, layout: Layout, folder: Path
) -> None:
    write(folder, 1, placed("chess"), placed("go"))
    other = folder.parent / "deployment.dev"
    write(other, 4, placed("chess"))
    for each in (folder, other):
        assert copy_record(spark, layout, each)
    write(folder, 2, placed("go"), placed("ludo"))
    assert copy_record(spark, layout, folder)
    assert games(spark, layout) == [("dev", "chess", 4), ("prod", "go", 2), ("prod", "ludo", 2)]
    assert versions(layout) == 3
    write(folder, 3)
    assert copy_record(spark, layout, folder)
    assert games(spark, layout) == [("dev", "chess", 4)]
    assert not copy_record(spark, layout, folder)


def test_a_deployment_that_was_destroyed_and_made_anew_counts_from_one_again(
    spark: SparkSession, layout: Layout, folder: Path
) -> None:
    write(folder, 12, placed("chess"))
    copy_record(spark, layout, folder)
    (folder / file_of(12)).unlink()
    assert not copy_record(spark, layout, folder)
    folder.rmdir()
    assert not copy_record(spark, layout, folder)
    assert games(spark, layout) == [("prod", "chess", 12)]
    again = placed("chess")
    write(folder, 2, replace(again, since=NOW + timedelta(days=1)))
    assert copy_record(spark, layout, folder)
    assert games(spark, layout) == [("prod", "chess", 2)]


def test_a_deployment_that_is_forgotten_has_no_rows_and_others_keep_theirs(
    spark: SparkSession, layout: Layout, folder: Path
) -> None:
    assert not has_deployment(spark, layout, "prod")
    assert not forget_deployment(spark, layout, "prod")
    write(folder, 1, placed("chess"), placed(None, "g__0123"))
    write(folder.parent / "deployment.dev", 4, placed("chess"))
    for name in ("prod", "dev"):
        copy_record(spark, layout, folder.parent / f"deployment.{name}")
        assert has_deployment(spark, layout, name)
    assert forget_deployment(spark, layout, "prod")
    assert not has_deployment(spark, layout, "prod")
    assert games(spark, layout) == [("dev", "chess", 4)]
    assert not forget_deployment(spark, layout, "prod")


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"\xff\xfe", deployment_format("dev").to_text(DeploymentRecord()).encode()]
)
def test_a_record_that_cannot_be_read_is_a_warning(
    spark: SparkSession, layout: Layout, folder: Path, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir(parents=True)
    (folder / file_of(1)).write_bytes(text)
    with caplog.at_level(logging.WARNING):
        assert not copy_record(spark, layout, folder)
    assert "was not copied" in _said(caplog.records)


def test_a_folder_that_is_none_is_a_warning(
    spark: SparkSession, layout: Layout, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "deployment.prod").write_text("a file")
    with caplog.at_level(logging.WARNING):
        assert not copy_record(spark, layout, tmp_path / "deployment.prod")
    assert "was not copied" in _said(caplog.records)


def _said(records: Iterable[logging.LogRecord]) -> str:
    return "\n".join(record.getMessage() for record in records)
