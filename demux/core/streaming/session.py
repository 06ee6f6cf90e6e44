"""The one place that makes a Spark session, with settings fit for many small tables.

Costs that the defaults have at this scale are measured in docs/decisions/0003-spark-settings.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demux.core.errors import RuntimeMissing
from demux.core.extras import on_databricks
from demux.core.settings.settings import SparkSettings
from demux.core.spark import classic
from demux.core.spark.classic import has_context, launch
from demux.core.spark.connect import open_remote
from demux.core.storage.access import StoreAccess
from demux.core.streaming.jvm_cache import JARS, JvmCache
from demux.core.tables import TABLE_CONF

# the newest of each line that resolves together with the installed Spark
_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "4.0": (
        "io.delta:delta-spark_4.0_2.13:4.4.0",
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
    ),
    "3.4": (
        "io.delta:delta-core_2.12:2.4.0",
        "org.apache.spark:spark-sql-kafka-0-10_2.12:3.4.1",
        "org.apache.spark:spark-protobuf_2.12:3.4.1",
    ),
}

# Spark's own client of S3, of the Hadoop that it has, with the few libraries of Amazon's that it needs instead of all
_S3_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "4.0": (
        "org.apache.hadoop:hadoop-aws:3.4.1",
        "software.amazon.awssdk:s3-transfer-manager:2.25.53",
        "software.amazon.awssdk:sts:2.25.53",
    ),
    "3.4": (
        "org.apache.hadoop:hadoop-aws:3.3.4",
        "com.amazonaws:aws-java-sdk-dynamodb:1.12.262",
        "com.amazonaws:aws-java-sdk-s3:1.12.262",
        "com.amazonaws:aws-java-sdk-sts:1.12.262",
    ),
}
_S3_CONF: Mapping[str, str] = {
    "spark.jars.excludes": "software.amazon.awssdk:bundle,com.amazonaws:aws-java-sdk-bundle",
    # the default of Hadoop 3.4: objects that mark folders are not looked for after each write
    "spark.hadoop.fs.s3a.directory.marker.retention": "keep",
    # what others call s3://, Hadoop calls s3a://
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
}

_NO_FUNCTION = ("PROTOBUF_NOT_LOADED", "UNRESOLVED_ROUTINE")

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# half the work of a JVM that lives a minute is to compile what it then hardly uses; and Spark has 200 MB of classes.
# that little room for compiled code is full after some minutes, and then nothing is compiled any more
SHORT_LIVED: Mapping[str, str] = {
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=256m"
}

# a JVM that lives on may compile what is hot for good, but what a plan needs ten times is not
_LONG_LIVED = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000 -XX:MetaspaceSize=256m"
)

# the rest of what follows is the Spark server's own, where that is another process
_OF_A_SESSION = ("spark.databricks.", "spark.sql.adaptive.", "spark.sql.sources.")
_CONF: Mapping[str, str] = {
    **TABLE_CONF,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.scheduler.mode": "FAIR",
    # or every jar of `spark.jars.packages` is looked through for Python modules at the beginning of every Python task
    "spark.submit.pyFiles": "",
    # the default makes ten processes a batch in a local folder, to read links that are none
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "FileSystemBasedCheckpointFileManager",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # a table here has few files: one task reads its log
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


def has_session() -> bool:
    """Return whether there is a session that is not ours to stop: other code made it, or the cluster brings it."""
    return on_databricks() or has_context()


def session(settings: SparkSettings, logs: Path, s3: StoreAccess | None = None) -> SparkSession:
    """Return the process's Spark session: the one that is there, the cluster's own, or a new one.

    A new one is of the Connect server `settings.remote`, or else on `settings.master`; that starts a JVM whose output
    goes to `logs/spark.log`, and a second call returns the same session.

    Args:
        s3: how a new session reaches S3; None where it need not.

    Raises:
        RuntimeMissing: no Java that this Spark runs on, no Delta package, or the JVM did not start.
    """
    if settings.remote is not None:
        return open_remote(settings.remote, _remote_conf(settings))
    if has_session():
        return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    logs.mkdir(parents=True, exist_ok=True)
    # stand-alone workers of a local-cluster would write beside the installed Spark
    os.environ.setdefault("SPARK_WORKER_DIR", str(logs / "workers"))
    log, cache = logs / "spark.log", JvmCache.of(os.environ)
    conf = cache.with_jars(classic_conf(settings, logs, s3))
    try:
        spark = launch(conf, log)
    except Exception as error:
        raise RuntimeMissing(
            f"Spark {pyspark.__version__} did not start: {str(error).splitlines()[0]} (see {log}).",
            "Install Java 17 and check that the packages named in spark.packages can be had.",
        ) from error
    cache.keep_jars(conf, (spark.conf.get(JARS, "") or "").split(","))
    return spark


def stop(spark: SparkSession) -> None:
    """Stop a session that `session` made, and its JVM; a second call does nothing.

    A cluster's session stays, with its JVM: several tasks of a job share them. So must one that was there before.
    """
    if on_databricks():
        return
    if classic.is_classic(spark):
        classic.stop(spark)
    else:
        spark.stop()


@lru_cache(maxsize=1)
def has_protobuf_functions(spark: SparkSession) -> bool:
    """Return whether Spark's own `from_protobuf` is on the class path; looked for once in a session."""
    if classic.is_classic(spark):
        return classic.has_class(spark, "org.apache.spark.sql.protobuf.ProtobufDataToCatalyst")
    from pyspark.sql.protobuf.functions import from_protobuf

    try:
        _ = spark.range(1).select(from_protobuf(F.lit(b""), "demux.Nothing")).schema
    except PySparkException as error:
        # of the message, which nobody has, it speaks only where it has the function
        return not any(sign in str(error) for sign in _NO_FUNCTION)
    return True


def _remote_conf(settings: SparkSettings) -> dict[str, str]:
    """Return what a session of a server sets; the rest is the server's."""
    own = {name: value for name, value in _CONF.items() if name.startswith(_OF_A_SESSION)}
    return {**TABLE_CONF, **own, "spark.sql.shuffle.partitions": str(settings.shuffle_partitions), **settings.conf}


def classic_conf(settings: SparkSettings, logs: Path, s3: StoreAccess | None) -> dict[str, str]:
    """Return all properties of a Spark that is started here, as a session or as a Connect server."""
    line = ".".join(pyspark.__version__.split(".")[:2])
    packages = settings.packages if settings.packages is not None else _PACKAGES.get(line)
    if packages is None:
        raise RuntimeMissing(
            f"No Delta packages are known for Spark {pyspark.__version__}.",
            "Name them in spark.packages, or install Spark 4.0 or 3.4.",
        )
    if s3 is not None:
        packages = (*packages, *(_S3_PACKAGES.get(line, ()) if settings.packages is None else ()))
    conf = {
        **_CONF,
        **({} if s3 is None else {**_S3_CONF, **s3.spark_conf()}),
        "spark.app.name": "protobuf-demux",
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.jars.packages": ",".join(packages),
    }
    if settings.master.startswith("local"):
        # nothing outside this machine needs to reach the driver
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    own = f"-Dlog4j2.configurationFile={_log_settings(logs).as_uri()}"
    given = settings.conf.get(JAVA_OPTIONS, _LONG_LIVED)
    java = " ".join(filter(None, (own, JvmCache.of(os.environ).java_option(given), given)))
    return {**conf, **settings.conf, JAVA_OPTIONS: java}


def _log_settings(logs: Path) -> Path:
    path = (logs / "log4j2.properties").absolute()
    path.write_text(
        "rootLogger.level = warn\n"
        "rootLogger.appenderRef.console.ref = console\n"
        "appender.console.type = Console\n"
        "appender.console.name = console\n"
        "appender.console.target = SYSTEM_ERR\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %d %p %c{1}: %m%n%ex\n",
        encoding="utf-8",
    )
    return path
