"""A fleet on a root in a store whose driver, workers and machine are killed at random moments, round after round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from demux.core.storage.files import Storage
from tests.support.flow.fleet_kills import BEFORE_FILES, BETWEEN_COMMITS, Run, Scale, Victim, kill_and_compare
from tests.support.flow.fleet_steps import Landmark, Step
from tests.support.flow.root import Root
from tests.support.store.stored import access_at, bucket_in, spark_reaches, stored
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

BUCKET = "killed"
ENVIRONMENT = {"STORE_KEY": ACCESS_KEY, "STORE_SECRET": SECRET_KEY}

# the driver once after each commit; all that has moments of its own: tests/flow/fleet/test_fleet_kills.py
_ONCE = Scale(
    5, 40, {(Victim.DRIVER, landmark): 1 for landmark in Landmark if landmark is not Landmark.FILES}, (), jobs_lost=0
)
_FIFTY = Scale(
    50,
    200,
    {
        (Victim.DRIVER, Landmark.BEGIN): 8,
        (Victim.DRIVER, Landmark.BRONZE): 10,
        (Victim.DRIVER, Landmark.FILES): 8,
        (Victim.DRIVER, Landmark.QUARANTINE): 8,
        (Victim.DRIVER, Landmark.SILVER): 8,
        (Victim.WORKERS, Landmark.BEGIN): 2,
        (Victim.WORKERS, Landmark.FILES): 4,
        (Victim.MACHINE, Landmark.BRONZE): 1,
        (Victim.MACHINE, Landmark.SILVER): 1,
    },
    least=((BEFORE_FILES, 8), ((Step.FILES,), 2), (BETWEEN_COMMITS, 4)),
    jobs_lost=1,
)


@pytest.fixture
def root(
    spark: SparkSession, object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Root]:
    bucket_in(object_store, BUCKET)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with spark_reaches(spark, Storage(access_at(object_store.url)), BUCKET):
        yield stored(spark, object_store, f"{BUCKET}/{tmp_path.name}")


def test_whatever_commit_a_driver_in_a_store_dies_after_no_row_is_lost_or_doubled_and_every_value_is_right(
    root: Root, seed: int
) -> None:
    kill_and_compare(Run(root, _ONCE, Random(seed)))


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_whatever_is_killed_in_a_store_at_any_moment_no_row_is_lost_or_doubled_and_every_value_is_right(
    root: Root, seed: int
) -> None:
    kill_and_compare(Run(root, _FIFTY, Random(seed), ENVIRONMENT))
