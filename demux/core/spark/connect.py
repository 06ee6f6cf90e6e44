"""Spark Connect: a session of a server elsewhere, and batches of its streams that are written in this process.

The server runs `foreachBatch` in a Python process of its own. There it only offers the batch: this process, which has
the root's lock, the schemas and the reports, reads the batch in the same session, writes it, and answers.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from demux.core.error_mapping import as_demux_error
from demux.core.errors import RuntimeMissing, SettingsInvalid
from demux.core.spark.classic import is_classic
from demux.core.spark.session_conf import set_conf

# of a request that the server does not answer; by default the client tries for ten minutes
_TRIES = 8
_BEAT_S = 5.0
# a process that is stopped for so long loses its batch, and another one may have it
_PATIENCE_S = 60.0
# what a view says before there is anything to say
_NOTHING = "nothing"
_POLL_S = 0.05


def open_remote(url: str, conf: Mapping[str, str]) -> SparkSession:
    """Return a new session of the server at `sc://host:port`, with these properties.

    Raises:
        RuntimeMissing: this Spark has no streams over Spark Connect.
        SessionLost: no server answers.
        SettingsInvalid: a property is the server's own.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    if not hasattr(SparkSession.builder, "create"):
        raise RuntimeMissing(
            "This Spark has no streams over Spark Connect.", "Install Spark 4, or set `spark.master` in its place."
        )
    spark: Any = SparkSession.builder.remote(url).create()
    spark.client.set_retry_policies([DefaultPolicy(max_retries=_TRIES, max_backoff=4000)])
    try:
        _configure(spark, conf)
    except PySparkException as error:
        raise as_demux_error(error) from error
    return spark  # type: ignore[no-any-return]


def new_session(spark: SparkSession, tuning: Mapping[str, str]) -> SparkSession:
    """Return a session with settings of its own that begin as those of this one, but for these (see `set_conf`)."""
    made: Any
    if is_classic(spark):
        made = spark.newSession()
    else:
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        given: Any = spark
        made = RemoteSession(connection=given.client._builder)
        before, has = given.conf.getAll, made.conf.getAll
        changed = {name: value for name, value in before.items() if has.get(name) != value}
        tuning = {**{name: value for name, value in changed.items() if made.conf.isModifiable(name)}, **tuning}
    for name, value in tuning.items():
        set_conf(made, name, value)
    return made  # type: ignore[no-any-return]


class Handover:
    """Takes the batches of one query from the server; for one start of it."""

    def __init__(self, spark: SparkSession, handle: Callable[[DataFrame, int], None]) -> None:
        """Prepare; `handle` is called in this process with each batch."""
        self._spark = spark
        self._handle = handle
        self._name = f"demux_{uuid.uuid4().hex}"
        self._done = _NOTHING
        for what in ("offer", "answer", "beat"):
            self._say(what, _NOTHING)

    def offer(self) -> Callable[[DataFrame, int], None]:
        """Return the function of `foreachBatch`, which runs at the server, and needs nothing of this package there."""
        return _offering(self._name, _POLL_S, _PATIENCE_S)

    def look(self) -> None:
        """Write the batch that is offered, if there is one; raises nothing of it: the query fails, and says so."""
        offered = self._spark.table(f"{self._name}_offer").columns[0]
        if offered == self._done:
            return
        self._done = offered
        try:
            self._handle(self._spark.table(self._name), int(offered))
        except Exception:
            self._say("answer", f"{offered} failed")
        else:
            self._say("answer", f"{offered} done")

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Tell the server, while the block runs, that this process lives."""
        ended = threading.Event()

        def beat() -> None:
            count = 0
            while not ended.wait(_BEAT_S):
                count += 1
                try:
                    self._say("beat", str(count))
                except Exception:  # a server that went away; the query says it
                    return

        thread = threading.Thread(target=beat, name="beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _say(self, what: str, word: str) -> None:
        # a view's column is read without a job; properties of its own no session on serverless compute may have
        self._spark.range(0).toDF(word).createOrReplaceTempView(f"{self._name}_{what}")


def _configure(spark: Any, conf: Mapping[str, str]) -> None:
    for name, value in conf.items():
        try:
            spark.conf.set(name, value)
        except PySparkException as error:
            if "CANNOT_MODIFY" not in str(error):
                raise
            raise SettingsInvalid(
                f"The Spark Connect server does not let a session set {name}.",
                "Set it where the server starts, and take it out of spark.conf.",
                name=name,
            ) from error


def _offering(name: str, poll_s: float, patience_s: float) -> Callable[[DataFrame, int], None]:
    # by value: no name of this module may be in it
    def offer(frame: DataFrame, batch_id: int) -> None:
        import time

        spark = frame.sparkSession
        frame.createOrReplaceTempView(name)
        spark.range(0).toDF(str(batch_id)).createOrReplaceTempView(f"{name}_offer")
        beat, seen = "", time.monotonic()
        while True:
            answer = spark.table(f"{name}_answer").columns[0]
            if answer == f"{batch_id} done":
                return
            if answer == f"{batch_id} failed":
                raise RuntimeError(f"the process that writes batch {batch_id} failed; it says why")
            now = spark.table(f"{name}_beat").columns[0]
            if now != beat:
                beat, seen = now, time.monotonic()
            elif time.monotonic() - seen > patience_s:
                raise RuntimeError(f"the process that writes batch {batch_id} is gone")
            time.sleep(poll_s)

    return offer
