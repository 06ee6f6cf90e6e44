"""A terminal on which names are names: never markup, never a little picture."""

from __future__ import annotations

import pytest

from demux.cli.command import console
from demux.cli.output.progress import BackfillProgress, RoundProgress
from demux.core.errors import TaskFailed
from demux.core.reports import GameReport, IngestReport
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan, Task

HOSTILE = ["[bold]x[/bold]", "[/b]", r"\[/b]", ":heart:", "[link=x]", "100%", "{task}", "\\"]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_printed_is_printed_as_it_is(name: str) -> None:
    with console.capture() as shown:
        console.print(f"/data/{name}")
    assert shown.get() == f"/data/{name}\n"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_round_shows_the_name_of_the_game_that_ended_last(name: str) -> None:
    report = GameReport(name, 1, 1, 0, (1,))
    with console.capture() as shown, RoundProgress() as progress:
        progress.ingested(IngestReport(1, 1, 0))
        progress.planned(Plan((), ()), 1)
        progress.ended(TaskEnd(Task(name, "deserialize", "cluster_001"), report, None, 1.0))
    assert f"silver {name} " in shown.get()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_backfill_shows_how_many_rows_are_done_and_of_which_game_the_last_ones_are(name: str) -> None:
    with console.capture() as shown, BackfillProgress(1_200, done=200) as progress:
        progress.advance(700, name)
    assert f"rows, {name} " in shown.get()
    assert " 900/1200 " in shown.get()


def test_a_round_says_which_game_failed_last() -> None:
    error = TaskFailed("It broke.", "Mend it.")
    with console.capture() as shown, RoundProgress() as progress:
        progress.planned(Plan((), ()), 1)
        progress.ended(TaskEnd(Task("[/b]", "deserialize", "cluster_001"), None, error, 1.0))
    assert "failed [/b] " in shown.get()
