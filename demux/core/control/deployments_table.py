"""The control table of deployments: a copy of the installer's record, made where there is Spark."""

from __future__ import annotations

import logging
from datetime import timezone
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.catalog.spark_tables import read_table, save_table
from demux.core.columns.spark import spark_struct
from demux.core.control.deployment_record import DeploymentRecord, deployment_format, deployment_in
from demux.core.control.record_format import version_in
from demux.core.error_mapping import as_demux_error
from demux.core.names import sql_string
from demux.core.root.layout import Layout
from demux.core.tables import DEPLOYMENTS

_log = logging.getLogger(__name__)
_Rows = frozenset[tuple[object, ...]]


def copy_record(spark: SparkSession, layout: Layout, folder: Path) -> bool:
    """Return whether the table had to be changed; it then has the newest record's games, in one transaction.

    It fails never: a copy is no reason to stop bronze, and the next run makes it. A folder that is not there, as the
    deployment was destroyed or never made by `demux apply`, changes nothing.
    """
    try:
        deployment, newest = deployment_in(str(folder)), _newest(folder)
        if newest is None:
            return False
        file, version = newest
        record = deployment_format(deployment).from_text(file.read_text(encoding="utf-8"), str(file))
        return _replace(spark, layout, deployment, _rows(deployment, version, record))
    except FileNotFoundError:
        # removed while we looked
        return False
    except Exception as error:
        _log.warning("the record of the deployment in %s was not copied: %s", folder, as_demux_error(error).message)
        return False


def has_deployment(spark: SparkSession, layout: Layout, deployment: str) -> bool:
    """Return whether the table has rows of the deployment."""
    return layout.storage.table_exists(layout.deployments) and bool(_written(spark, layout, deployment))


def forget_deployment(spark: SparkSession, layout: Layout, deployment: str) -> bool:
    """Return whether the table had rows of the deployment; they are gone afterwards. Safe to call twice."""
    return _replace(spark, layout, deployment, frozenset())


def _newest(folder: Path) -> tuple[Path, int] | None:
    versions = ((file, version_in(file.name)) for file in folder.iterdir())
    return max(((file, version) for file, version in versions if version), key=lambda found: found[1], default=None)


def _rows(deployment: str, version: int, record: DeploymentRecord) -> _Rows:
    placed = ((game.place, game.plan_id, game.since.astimezone(timezone.utc)) for game in record.games)
    return frozenset(
        (deployment, place.game, place.job, place.job_id, place.task, place.cluster, plan_id, since, version)
        for place, plan_id, since in placed
    )


def _replace(spark: SparkSession, layout: Layout, deployment: str, rows: _Rows) -> bool:
    """Return whether the deployment's rows were others; a number alone says little, as it restarts after a destroy."""
    there = layout.storage.table_exists(layout.deployments)
    if rows == (_written(spark, layout, deployment) if there else frozenset()):
        return False
    frame = spark.createDataFrame(sorted(rows, key=repr), spark_struct(DEPLOYMENTS)).coalesce(1)
    writer = frame.write.mode("overwrite" if there else "append")
    if there:
        writer = writer.option("replaceWhere", f"deployment = {sql_string(deployment)}")
    save_table(spark, writer, layout.storage.address(layout.deployments))
    return True


def _written(spark: SparkSession, layout: Layout, deployment: str) -> _Rows:
    table = read_table(spark, layout.storage.address(layout.deployments))
    found = table.where(F.col("deployment") == deployment)
    rows = (row.asDict() for row in found.select(*(column.name for column in DEPLOYMENTS)).collect())
    # PySpark gives times in this process's zone, and without saying so
    return frozenset(tuple({**row, "since": row["since"].astimezone(timezone.utc)}.values()) for row in rows)
