"""The session of the tests itself starts from what the machine keeps."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from demux.core.streaming.jvm_cache import JvmCache

pytestmark = pytest.mark.both_lanes


def test_a_session_names_jars_and_no_packages_and_has_the_archive_that_is_kept(spark: SparkSession) -> None:
    cache = JvmCache.of(os.environ)
    # without JAVA_HOME this process may have found another Java
    assert (f"-XX:SharedArchiveFile={cache.classes}" in options(spark)) == cache.classes.is_file()
    jars = (spark.conf.get("spark.jars") or "").split(",")
    assert any("delta" in jar for jar in jars)
    assert any("kafka-clients" in jar for jar in jars)
    assert not spark.conf.get("spark.jars.packages", "")
    assert [path.name for path in cache.folder.glob("jars-*.json")]


def options(spark: SparkSession) -> str:
    return spark.conf.get("spark.driver.extraJavaOptions") or ""
