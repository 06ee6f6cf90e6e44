"""The next session starts from what the machine keeps of this one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demux.core.settings.settings import SparkSettings
from demux.core.storage.access import StoreAccess
from demux.core.streaming.jvm_cache import JvmCache
from demux.core.streaming.session import classic_conf

pytestmark = pytest.mark.both_lanes


def test_the_jars_of_a_session_are_those_of_the_next_one_and_the_archive_is_used_where_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    cache = JvmCache.of(os.environ)
    conf = cache.with_jars(classic_conf(SparkSettings(master="local[2]"), tmp_path, StoreAccess()))
    assert "spark.jars.packages" not in conf
    assert {*conf["spark.jars"].split(",")} == {*(spark.conf.get("spark.jars") or "").split(",")}
    options = spark.conf.get("spark.driver.extraJavaOptions") or ""
    assert (f"-XX:SharedArchiveFile={cache.classes}" in options) == cache.classes.is_file()
