"""Roots in the S3 server of the tests, whose files the tests also find in the server's own folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from demux.core.settings.settings import Settings
from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from tests.support.flow.root import Root
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY, ObjectStore

KEYS = {"access_key": "secret:env/STORE_KEY", "secret_key": "secret:env/STORE_SECRET"}


def stored(spark: SparkSession, store: ObjectStore, name: str, /, url: str | None = None, **changes: Any) -> Root:
    """Return the root of this name, `<bucket>/<key>`, as it is reached at the URL; source and schemas are a folder's.

    The environment must have `STORE_KEY` and `STORE_SECRET`.
    """
    kept = store.folder / name
    said = {
        "root": f"s3://{name}",
        "source": {"path": str(kept / "source")},
        "registry": {"path": str(kept / "registry")},
        "store": {"endpoint": url or store.url, **KEYS},
        "run": {"engine": "fleet", "retry_wait_s": 0.0},
    }
    return Root(spark, Settings.model_validate({**said, **changes}), kept)


def copied(root: Root, store: ObjectStore, name: str, url: str | None = None, **changes: object) -> Root:
    """Return a root of another name with the content of this one, which may be a folder; costs no request."""
    shutil.copytree(root.folder, store.folder / name)
    return stored(root.spark, store, name, url, **changes)


@contextmanager
def spark_reaches(spark: SparkSession, storage: Storage, bucket: str) -> Iterator[None]:
    """Let the session reach this bucket so while the block runs."""
    context = spark.sparkContext
    hadoop = context._jsc.hadoopConfiguration()
    said = {
        name.replace("spark.hadoop.fs.s3a.", f"fs.s3a.bucket.{bucket}."): value
        for name, value in storage.access.spark_conf().items()
    }
    for name, value in said.items():
        hadoop.set(name, value)
    yield
    for name in said:
        hadoop.unset(name)


def access_at(url: str, timeout_s: float = 120.0) -> StoreAccess:
    """Return how the server is reached at this URL."""
    return StoreAccess(url, access_key=ACCESS_KEY, secret_key=SECRET_KEY, timeout_s=timeout_s)


def bucket_in(store: ObjectStore, name: str) -> Path:
    """Return the folder of one more bucket."""
    folder = store.folder / name
    folder.mkdir(exist_ok=True)
    return folder
