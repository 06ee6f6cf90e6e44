"""A round's progress on the terminal."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from demux.cli.command import console
from demux.core.reports import GameReport, IngestReport
from demux.core.schemas.registry_selection import RegisteredGames
from demux.core.text import printable
from demux.pipeline.observers.observer import Observer
from demux.pipeline.task_pool import TaskEnd
from install_workflow.planning.plan import Plan, left_out, waiting_lines

if TYPE_CHECKING:
    from typing_extensions import Self


class _Bars:
    """Bars that are drawn while the block runs."""

    def __init__(self, *further: ProgressColumn) -> None:
        """Prepare; `further` columns come after those that all bars have."""
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            *further,
            console=console,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class RoundProgress(_Bars, Observer):
    """Two bars: bronze (no length is known), then one step for each game."""

    def __init__(self) -> None:
        """Prepare; nothing is drawn before the block begins."""
        super().__init__()
        self._bronze = self._progress.add_task("bronze", total=None)
        self._silver = self._progress.add_task("silver", total=None, visible=False)

    def ingested(self, report: IngestReport) -> None:
        """Fill the bar of bronze."""
        self._progress.update(self._bronze, total=report.rows_in, completed=report.rows_in)

    def registered(self, registered: RegisteredGames) -> None:
        """Print the names that no game can have."""
        print_left_out(registered)

    def planned(self, plan: Plan, due: int) -> None:
        """Begin the bar of the games."""
        self._progress.update(self._silver, total=due, visible=True)

    def ended(self, end: TaskEnd[GameReport]) -> None:
        """Move the bar of the games."""
        mark = "silver" if end.error is None else "failed"
        self._progress.update(self._silver, advance=1, description=f"{mark} {printable(end.task.game)}")


class BackfillProgress(_Bars):
    """A bar over the rows of a backfill, with about how long the rest takes."""

    def __init__(self, rows: int, done: int) -> None:
        """Prepare for so many rows, of which some are done."""
        super().__init__(TimeRemainingColumn())
        self._rows = self._progress.add_task("rows", total=rows, completed=done)

    def advance(self, rows: int, game: str) -> None:
        """Move the bar by so many rows of a game, which has just ended."""
        self._progress.update(self._rows, advance=rows, description=f"rows, {printable(game)}")


def print_left_out(registered: RegisteredGames) -> None:
    """Print the names in the registries that no game can have, each with the reason."""
    for line in waiting_lines(left_out(registered)):
        console.print(line, style="yellow", soft_wrap=True)
