"""What the flow's commands make of a time and of a round's end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from demux.cli.run import run as flow
from demux.cli.run.run import exit_code
from demux.core.control.games_and_rounds import Control, TaskRecord
from demux.core.errors import (
    CheckpointLost,
    ConcurrentChange,
    DemuxError,
    ExitCode,
    GameUnknown,
    RegistryUnavailable,
    RootLocked,
    SettingsInvalid,
    StorageFailed,
)
from demux.core.names import game_key
from demux.core.reports import GameReport, IngestReport
from demux.core.root.lock import Access
from demux.core.schemas.store import SchemaStore
from demux.core.settings.settings import Settings
from demux.pipeline.context import CommandContext
from demux.pipeline.round import Round
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan, Task

PROJECT = Path(__file__).parents[5]


def ended(*errors: type[DemuxError] | None) -> tuple[TaskEnd[GameReport], ...]:
    return tuple(
        TaskEnd(
            Task(f"game{number}", f"deserialize_game{number}", "cluster_001"),
            GameReport(f"game{number}", 1, 1, 0, (1,)) if error is None else None,
            None if error is None else error("It broke.", "Mend it."),
            1.0,
        )
        for number, error in enumerate(errors)
    )


def round_of(*errors: type[DemuxError] | None, complete: bool = True) -> Round:
    return Round("r", IngestReport(0, 0, 0), Plan((), ()), ended(*errors), complete)


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (round_of(), ExitCode.OK),
        (round_of(None, None), ExitCode.OK),
        (round_of(None, CheckpointLost), ExitCode.GAMES_FAILED),
        (round_of(None, StorageFailed), ExitCode.GAMES_FAILED),
        (round_of(None, RegistryUnavailable), ExitCode.TRANSIENT),
        (round_of(ConcurrentChange, RootLocked), ExitCode.TRANSIENT),
        (round_of(RegistryUnavailable, CheckpointLost), ExitCode.GAMES_FAILED),
        (round_of(None, complete=False), ExitCode.INTERRUPTED),
        (round_of(None, CheckpointLost, complete=False), ExitCode.GAMES_FAILED),
        (round_of(RegistryUnavailable, complete=False), ExitCode.TRANSIENT),
    ],
)
def test_the_exit_code_says_the_worst_that_happened(result: Round, code: ExitCode) -> None:
    assert exit_code(result) is code


def test_games_that_were_stopped_before_they_began_are_an_interruption(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    stop = threading.Event()
    stop.set()

    @contextmanager
    def stopped(settings: Settings, command: str, access: Access, *, wait: bool) -> Iterator[CommandContext]:
        yield CommandContext(
            settings, cast(SchemaStore, None), cast(Control, Closing()), stop, spark=cast(SparkSession, None)
        )

    monkeypatch.setattr(flow, "command_context", stopped)
    monkeypatch.setattr(flow, "_find_games", lambda place, wanted, ignore_unknown: list(wanted))
    with pytest.raises(typer.Exit) as end:
        flow.deserialize(
            Settings(), games=["chess", "chess"], keys=["go"], json=False, wait=False, ignore_unknown=False
        )
    assert end.value.exit_code == ExitCode.INTERRUPTED


class Closing:
    """A control table that gets no records."""

    def close_round(self, records: list[TaskRecord], bronze_version: int | None) -> None:
        assert (records, bronze_version) == ([], None)


def deserialize(games: list[str], keys: list[str]) -> None:
    flow.deserialize(Settings(), games=games, keys=keys, json=False, wait=False, ignore_unknown=False)


def test_without_a_game_there_is_nothing_to_deserialize() -> None:
    with pytest.raises(SettingsInvalid, match="Say which game"):
        deserialize([], [])


@pytest.mark.parametrize("key", ["../chess", "", "Chess", "a" * 59, "chess\n", "1up"])
def test_what_no_game_can_have_as_its_key_is_an_unknown_game(key: str) -> None:
    with pytest.raises(GameUnknown, match="No game has the key"):
        deserialize(["chess"], [key])


@given(st.text())
def test_every_games_key_can_be_asked_for(name: str) -> None:
    key = game_key(name)
    assert flow._wanted([], [key]) == {key: None}
    assert flow._wanted([name], [key, key]) == {key: name}
