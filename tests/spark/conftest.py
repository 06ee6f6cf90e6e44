from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deserializer.decoders.select import ARROW, FromProtobuf, RowDecoder
from tests.support.spark_session import compiled, lane_of_spark

# spark's own is on the class path of the oldest lane only
DECODERS = {"oldest": ("arrow", "from_protobuf"), "current": ("arrow",)}[lane_of_spark()]
collect_ignore = [] if "from_protobuf" in DECODERS else ["silver/test_from_protobuf.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all of this folder on both lanes: it tests what we call of Spark and Delta."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("both_lanes")


@pytest.fixture(scope="module")
def compiled_plans(spark: SparkSession) -> Iterator[None]:
    """Plans of this module are compiled, as they are in production: what Spark itself makes of a row is the subject."""
    with compiled(spark):
        yield


@pytest.fixture(scope="session", params=DECODERS)
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RowDecoder:
    """Each decoder that the lane has."""
    return FromProtobuf(tmp_path_factory.mktemp("descriptors")) if request.param == "from_protobuf" else ARROW
