"""A real S3 server, started when a test first asks for it, one for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from tests.fakes.gcs_server import GcsServer, serving_gcs
from tools.servers.stores.azure import ACCOUNT_KEY, start_azure
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore, start_object_store


@pytest.fixture(scope="session")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """The server, with the bucket `demux`."""
    with start_object_store(tmp_path_factory.mktemp("store")) as started:
        yield started


@pytest.fixture(scope="session")
def in_store(object_store: ObjectStore) -> Storage:
    """How its files are reached."""
    return Storage(StoreAccess(object_store.url, access_key=ACCESS_KEY, secret_key=SECRET_KEY))


@pytest.fixture(scope="session")
def in_azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    """How files of the container `demux` of an Azure server are reached."""
    with start_azure(tmp_path_factory.mktemp("azure")) as started:
        started.create_container("demux")
        yield Storage(StoreAccess(started.url, account_key=ACCOUNT_KEY))


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    """A server that speaks Google's XML API, with the bucket `demux`."""
    with serving_gcs(GcsServer()) as started:
        yield started


@pytest.fixture(scope="session")
def in_gcs(gcs: GcsServer) -> Storage:
    """How its files are reached."""
    return Storage(StoreAccess(gcs.url, service_account=gcs.service_account))


@pytest.fixture
def spark_in_store(spark: SparkSession, in_store: Storage) -> Iterator[SparkSession]:
    """The session, which reaches the server as a new one would by the settings."""
    context, said = spark.sparkContext, in_store.access.spark_conf()
    hadoop = context._jsc.hadoopConfiguration()
    for name, value in said.items():
        hadoop.set(name.removeprefix("spark.hadoop."), value)
    yield spark
    for name in said:
        hadoop.unset(name.removeprefix("spark.hadoop."))
