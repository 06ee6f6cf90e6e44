"""`python -m tests.kafka.leaking SETTINGS` ingests and runs a round, then prints all that a curious person can see."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bronze_ingest.source import wrapper_stream
from demux.cli.flow import one_round
from demux.cli.workplace import Workplace, settings_of, workplace
from demux.lock import Access


def main(file: str) -> None:
    """Print, besides what the commands print: settings, Spark's conf, and plans of the source before and behind."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    with workplace(settings_of(Path(file), None, []), "run", Access.ALONE) as place:
        print(place.ingest())
        for end in one_round(place).ended:
            print(end)
        print(place, place.settings)
        print_conf(place.spark)
        print_plans(place)


def print_conf(spark: SparkSession) -> None:
    """Print Spark's properties in every way there is, and those of its JVM."""
    print(spark.sparkContext.getConf().getAll(), spark.sparkContext.getConf().toDebugString())
    print(spark.sql("SET").collect(), spark.sql("SET -v").collect())
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    print(jvm.java.lang.System.getProperties().toString())


def print_plans(place: Workplace) -> None:
    """Print the source's plans: not yet run, running, and read at once; and what a query says of itself."""
    stream = wrapper_stream(place.spark, place.settings)
    print_plan(stream)
    query = stream.writeStream.format("noop").queryName("curious").trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(True)
    print(query.lastProgress, query.status, query.recentProgress)


def print_plan(frame: DataFrame) -> None:
    """Print the frame's plans, and the frame."""
    frame.explain(True)
    print(frame, frame._jdf.queryExecution().toString())


if __name__ == "__main__":
    main(sys.argv[1])
