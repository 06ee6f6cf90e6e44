"""Whose session it is: what somebody else made, or a cluster brings, is never stopped."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from demux.core.extras import on_databricks
from demux.core.streaming.session import has_session, stop


class FakeContext:
    """As PySpark has it, with a JVM that must live on."""

    _gateway = None


class FakeSession:
    """All that is used of a session when it is stopped."""

    sparkContext = FakeContext()
    stopped = 0

    def stop(self) -> None:
        self.stopped += 1


def test_a_process_that_has_begun_nothing_has_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    assert (on_databricks(), has_session()) == (False, False)


def test_a_session_that_somebody_made_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    monkeypatch.setattr(SparkContext, "_active_spark_context", FakeContext())
    assert has_session()


@pytest.mark.parametrize(("runtime", "stopped"), [("", 1), ("17.3", 0)])
def test_a_clusters_session_is_not_stopped(monkeypatch: pytest.MonkeyPatch, runtime: str, stopped: int) -> None:
    monkeypatch.delenv("DATABRICKS_RUNTIME_VERSION", raising=False)
    if runtime:
        monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", runtime)
    session = FakeSession()
    stop(cast(SparkSession, session))
    assert session.stopped == stopped
    assert on_databricks() is bool(runtime)
