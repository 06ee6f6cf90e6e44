"""`python -m tests.support.kafka.leaking REFUSED SHUT_OUT CURIOUS`: three commands with these settings, on one session.

With the first, `demux ingest`; with the second, `demux run`; with the third, bronze and a round, and then all that a
curious person can see. Prints of each its exit code and what it printed, as JSON.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bronze_ingest.source import wrapper_stream
from demux.cli import main as demux
from demux.cli.command import command_context
from demux.cli.options import settings_of
from demux.cli.run.run import with_progress
from demux.core.root.layout import logs_of
from demux.core.root.lock import Access
from demux.core.streaming.session import session
from demux.pipeline.context import CommandContext
from demux.pipeline.round import run_all


def main(refused: str, shut_out: str, curious: str) -> None:
    """Run the three commands."""
    settings = settings_of(Path(refused), None, [])
    session(settings.spark, logs_of(settings.root))
    ends = [
        said(lambda: command("ingest", "-c", refused)),
        said(lambda: command("run", "-c", shut_out)),
        said(lambda: look_around(curious)),
    ]
    print(json.dumps(ends))


def command(*words: str) -> None:
    sys.argv = ["demux", *words]
    demux()


def said(work: Callable[[], None]) -> dict[str, object]:
    """Return how a command ended, and what it printed."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            work()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def look_around(file: str) -> None:
    """Print, besides what the commands print: settings, Spark's conf, and plans of the source before and behind."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    with command_context(settings_of(Path(file), None, []), "run", Access.ALONE) as place:
        print(place.ingest())
        for end in with_progress(partial(run_all, place)).ended:
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


def print_plans(place: CommandContext) -> None:
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
    main(*sys.argv[1:])
