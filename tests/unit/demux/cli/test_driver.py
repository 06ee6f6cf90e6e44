"""What a driver says when it cannot work."""

from __future__ import annotations

import threading
from typing import cast

import pytest
from pyspark.sql import SparkSession

from demux.cli.driver import _fleet, why_not
from demux.cli.workplace import Workplace
from demux.control import Control
from demux.errors import Kind, RuntimeMissing, SecretMissing
from demux.reports import GameReport
from demux.schema_store import SchemaStore
from demux.settings import Settings
from install_workflow.drivers import Begun, Hello, Message, Over
from install_workflow.engine import Ended
from install_workflow.plan import Task
from install_workflow.run import OnEnd

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


def task(game: str) -> Task:
    return Task(game, f"deserialize_{game}", "cluster_001")


def said_by_a_fleet(stop_after: int) -> list[str]:
    """What a driver says of two games together and of two alone, where it is told to stop after so many groups."""
    stop, said = threading.Event(), list[Message]()
    none = cast(SparkSession, None), cast(SchemaStore, None), cast(Control, None)
    groups: list[int] = []

    def decode(tasks: tuple[Task, ...], on_end: OnEnd) -> tuple[Ended[GameReport], ...]:
        groups.append(len(tasks))
        ended = tuple(Ended(each, GameReport(each.game, 1, 1, 0, ()), None, 0.0) for each in tasks)
        for end in ended:
            on_end(end)
        if len(groups) == stop_after:
            stop.set()
        return ended

    place = Workplace(Settings(), *none, stop)
    _fleet(place, decode, ((task("a"), task("b")), (task("c"),), (task("d"),)), said.append)
    return [f"{type(each).__name__} {each.game}" for each in said if isinstance(each, Begun | Over)]


def test_a_fleets_games_are_begun_together_and_those_that_are_suspected_one_after_the_other() -> None:
    together = ["Begun a", "Begun b", "Over a", "Over b"]
    assert said_by_a_fleet(9) == [*together, "Begun c", "Over c", "Begun d", "Over d"]
    assert said_by_a_fleet(2) == [*together, "Begun c", "Over c"]
    assert said_by_a_fleet(1) == together
