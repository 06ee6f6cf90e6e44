"""The libraries that an extra of the wheel installs: loaded where they are used, and an error that names the extra.

A task on a cluster needs none of them, but for `kafka` in the task of bronze (docs/decisions/0029).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from demux.core.errors import RuntimeMissing

# which extra installs a top-level package
EXTRA_OF: Mapping[str, str] = {
    "confluent_kafka": "kafka",
    "delta": "local",
    "deltalake": "tables",
    "duckdb": "tables",
    "grpc": "connect",
    "grpc_status": "connect",
    "openlineage": "lineage",
    "opentelemetry": "telemetry",
    "pandas": "local",
    "py4j": "local",
    "pyspark": "local",
    "sqlglot": "forget",
    "zstandard": "connect",
}


def on_databricks() -> bool:
    """Return whether this process runs on a cluster of a Databricks workspace."""
    return "DATABRICKS_RUNTIME_VERSION" in os.environ


def missing_extra(error: BaseException) -> RuntimeMissing | None:
    """Return the error of a library that an extra installs; None for any other error."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    extra = EXTRA_OF.get(package)
    if extra is None:
        return None
    return RuntimeMissing(
        f"The Python package {package} is not installed.",
        f"Type: pip install 'protobuf-demux[{extra}]'",
        package=package,
        extra=extra,
    )


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import deltalake as deltalake
    import deltalake.exceptions
    import deltalake.transaction
    import duckdb as duckdb
    import obstore as obstore
    import obstore.exceptions
    import obstore.store
else:
    deltalake = _LazyModule("deltalake")
    duckdb = _LazyModule("duckdb")
    obstore = _LazyModule("obstore")
