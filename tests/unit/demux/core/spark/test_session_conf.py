"""What a session may set, and what it does where the compute does not let it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from demux.core.spark.session_conf import get_conf, set_conf


class Conf:
    """Properties of a session on serverless compute: those on its list, and an error for all others."""

    def __init__(self) -> None:
        self.values = {"spark.sql.shuffle.partitions": "200"}

    def _require(self, name: str) -> None:
        if name not in self.values:
            raise AnalysisException(f"[CONFIG_NOT_AVAILABLE] Configuration {name} is not available. SQLSTATE: 42K0I")

    def set(self, name: str, value: str) -> None:
        if value == "none":
            raise AnalysisException("[INVALID_CONF_VALUE] no number")
        self._require(name)
        self.values[name] = value

    def get(self, name: str, default: str | None = None) -> str | None:
        self._require(name)
        return self.values[name]


class Session:
    """A session as far as its properties go."""

    def __init__(self) -> None:
        self.conf = Conf()


def test_a_property_that_may_not_be_set_is_left_and_the_caller_learns_it() -> None:
    spark: Any = Session()
    assert set_conf(spark, "spark.sql.shuffle.partitions", "2") is True
    assert set_conf(spark, "spark.databricks.delta.optimize.minFileSize", "1") is False
    assert spark.conf.values == {"spark.sql.shuffle.partitions": "2"}


def test_a_property_that_may_not_be_read_is_the_default() -> None:
    spark: Any = Session()
    assert get_conf(spark, "spark.sql.shuffle.partitions", "7") == "200"
    assert (get_conf(spark, "spark.redaction.string.regex"), get_conf(spark, "a.b", "c")) == (None, "c")


def test_any_other_error_stays_one() -> None:
    spark: Any = Session()
    with pytest.raises(AnalysisException, match="INVALID_CONF_VALUE"):
        set_conf(spark, "spark.sql.shuffle.partitions", "none")
