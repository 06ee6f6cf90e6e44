"""Properties of a session that tune it: serverless compute of Databricks lets a session read and set very few."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_REFUSED = "CONFIG_NOT_AVAILABLE"


def set_conf(spark: SparkSession, name: str, value: str) -> bool:
    """Set the property of this session and return whether that is possible; a second call is safe.

    Where it is not, the platform's own value holds: use it for what makes a query faster or smaller, and not for what
    its rows depend on.
    """
    try:
        spark.conf.set(name, value)
    except PySparkException as error:
        if _REFUSED not in str(error):
            raise
        return False
    return True


def get_conf(spark: SparkSession, name: str, default: str | None = None) -> str | None:
    """Return the property of this session; the default where it has none, or lets no one read it."""
    try:
        return spark.conf.get(name, default)
    except PySparkException as error:
        if _REFUSED not in str(error):
            raise
        return default
