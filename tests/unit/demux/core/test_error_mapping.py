"""Failures of others in our words."""

from __future__ import annotations

import pytest

from demux.core.error_mapping import as_demux_error
from demux.core.errors import (
    ConcurrentChange,
    DemuxError,
    ErrorKind,
    SchemaUnknown,
    ServiceUnavailable,
    SessionLost,
    StorageFailed,
    TaskFailed,
)

JAVA_TRACE = """An error occurred while calling o99.save.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.sql.Writer.write(Writer.scala:1)
Caused by: org.apache.spark.SparkException: Task failed
\tat java.lang.Thread.run(Thread.java:840)
Caused by: java.io.IOException: No space left on device
\tat java.io.FileOutputStream.writeBytes(Native Method)
"""


def test_an_error_in_our_words_comes_back_as_it_is() -> None:
    error = SchemaUnknown("No such schema.", "Register it.")
    assert as_demux_error(error) is error


@pytest.mark.parametrize(
    ("error", "sign"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (OSError(30, "Read-only file system"), "Read-only file system"),
        (NotADirectoryError(20, "Not a directory"), "Not a directory"),
        (OSError(122, "Disk quota exceeded"), "Disk quota exceeded"),
        (RuntimeError("java.io.IOException: Mkdirs failed to create file:/r/silver"), "Mkdirs failed to create"),
    ],
)
def test_a_full_or_forbidden_storage_is_terminal_and_says_that_nothing_is_lost(error: Exception, sign: str) -> None:
    error = as_demux_error(error)
    assert isinstance(error, StorageFailed)
    assert error.kind is ErrorKind.TERMINAL
    assert error.message.startswith(f"The storage refused to work ({sign}): ")
    assert error.remedy.endswith("nothing is lost.")


@pytest.mark.parametrize(
    "text",
    [
        "[DELTA_CONCURRENT_APPEND] files were added by a concurrent update",
        "io.delta.exceptions.ConcurrentAppendException: files were added",
    ],
)
def test_the_conflict_of_two_writers_is_a_concurrent_change(text: str) -> None:
    error = as_demux_error(RuntimeError(text))
    assert isinstance(error, ConcurrentChange)
    assert error.kind is ErrorKind.TRANSIENT
    assert error.message == f"Another writer changed the table meanwhile: RuntimeError: {text}."


@pytest.mark.parametrize(
    "text",
    [
        "ExecutorLostFailure (executor 1 exited): worker lost",
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "org.apache.spark.shuffle.FetchFailedException",
        "java.net.ConnectException: Connection refused",
        "Connection reset by peer",
        "java.net.SocketTimeoutException: Read timed out",
        "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment",
    ],
)
def test_a_lost_worker_or_a_silent_server_is_an_unavailable_service(text: str) -> None:
    error = as_demux_error(RuntimeError(text))
    assert isinstance(error, ServiceUnavailable)
    assert error.kind is ErrorKind.TRANSIENT
    assert error.message == f"A server or a worker did not answer: RuntimeError: {text}."


def test_a_failure_without_a_name_of_its_own_keeps_its_sentence_and_points_to_the_log() -> None:
    error = as_demux_error(KeyError("col_chess_game_7"))
    assert isinstance(error, TaskFailed)
    assert (error.kind, error.message) == (ErrorKind.TERMINAL, "KeyError: 'col_chess_game_7'.")
    assert "log file" in error.remedy


def test_the_deepest_cause_of_a_java_trace_is_the_sentence() -> None:
    error = as_demux_error(RuntimeError(JAVA_TRACE))
    assert error.message == (
        "The storage refused to work (No space left on device): java.io.IOException: No space left on device."
    )


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ValueError(), "ValueError:."),
        (ValueError("It ends with a stop."), "ValueError: It ends with a stop."),
        (ValueError("first\nsecond"), "ValueError: first."),
        # as py4j writes what the JVM raised
        (
            ValueError("An error occurred while calling o1.save.\n: a.b.Violated: known\n - name: eve"),
            "a.b.Violated: known.",
        ),
        (ValueError("x" * 1000), f"ValueError: {'x' * 288}."),
    ],
)
def test_a_sentence_is_one_short_line_with_one_full_stop(error: Exception, cause: str) -> None:
    assert as_demux_error(error).message == cause


def test_what_a_worker_raised_is_the_sentence_and_not_what_java_says_of_it() -> None:
    text = (
        "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in run\n    write()\n    ^^^^^^^\n'
        "ValueError: Length of names (13) does not match length of arrays (15)\n\n"
        "\tat org.apache.spark.api.python.BasePythonRunner\nCaused by: java.lang.Exception: less\n"
    )
    assert (
        as_demux_error(RuntimeError(text)).message
        == "ValueError: Length of names (13) does not match length of arrays (15)."
    )


def test_the_sentences_of_an_error_are_its_text() -> None:
    error = DemuxError("It broke.", "Mend it.", part="wheel")
    assert str(error) == "[UNEXPECTED] It broke. Mend it."
    assert (error.message, error.remedy, error.fields) == ("It broke.", "Mend it.", {"part": "wheel"})


def test_a_conflict_of_two_writers_is_transient_even_when_it_names_the_file() -> None:
    error = as_demux_error(RuntimeError("ConcurrentAppendException: caused by FileAlreadyExistsException: 0001.json"))
    assert (error.condition, error.kind) == ("CONCURRENT_CHANGE", ErrorKind.TRANSIENT)


def test_a_server_that_refuses_the_connection_is_transient() -> None:
    assert as_demux_error(ConnectionRefusedError("refused")).kind is ErrorKind.TRANSIENT


class SparkConnectGrpcException(Exception):
    """As PySpark has it; its own one is there with grpcio alone."""

    __module__ = "pyspark.errors.exceptions.connect"


@pytest.mark.parametrize(
    "text",
    [
        '<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "…"',
        "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle 1 is invalid. Session not found.",
        "[INVALID_HANDLE.SESSION_CLOSED] The handle 1 is invalid. Session was closed.",
        "[RETRIES_EXCEEDED] The maximum number of retries has been exceeded.",
    ],
)
def test_a_connect_server_that_went_away_is_told_with_what_to_do(text: str) -> None:
    error = as_demux_error(SparkConnectGrpcException(text))
    assert isinstance(error, SessionLost)
    assert error.message.startswith(
        "The Spark Connect server does not answer, or does not know this session any more: "
    )
    assert error.remedy.startswith("See that the server of `spark.remote` runs")


def test_what_else_a_connect_server_says_is_no_lost_session() -> None:
    assert not isinstance(as_demux_error(SparkConnectGrpcException("[DIVIDE_BY_ZERO] Division by zero.")), SessionLost)
    assert "Spark Connect server" not in as_demux_error(OSError("StatusCode.UNAVAILABLE")).message
