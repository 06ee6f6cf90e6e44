"""What a driver says when it cannot work."""

from __future__ import annotations

import pytest

from demux.cli.driver import why_not
from demux.errors import Kind, RuntimeMissing, SecretMissing
from install_workflow.drivers import Hello

HELLO = Hello("/root", "cluster_001", "/logs")


@pytest.mark.parametrize("error", [RuntimeMissing("No Java.", "Install it."), SecretMissing("None.", "Set it.")])
def test_a_failure_that_has_a_name_is_said_as_it_is(error: Exception) -> None:
    assert why_not(error, HELLO) is error


def test_a_full_disk_is_the_storages() -> None:
    assert why_not(OSError(28, "No space left on device"), HELLO).condition == "STORAGE_FAILED"


def test_what_nobody_foresaw_may_be_a_dead_jvm_and_is_worth_another_try() -> None:
    said = why_not(ValueError("odd"), HELLO)
    assert (said.condition, said.kind) == ("DRIVER_DIED", Kind.TRANSIENT)
    assert (said.cause, said.remedy) == (
        "The driver of cluster_001 could not work: ValueError: odd.",
        "See the log files in /logs.",
    )
