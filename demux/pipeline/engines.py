"""What decodes the games of a round: one fleet for all of them, or a stream for each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial

from demux.core.error_mapping import as_demux_error
from demux.core.errors import ErrorKind
from demux.core.reports import GameReport
from demux.core.settings.settings import Engine
from demux.pipeline.context import CommandContext
from demux.pipeline.task_pool import TaskEnd, run_tasks
from deserializer.fleet.game_state import GameResult
from deserializer.fleet.round import Fleet
from install_workflow.planning.plan import Task

_LOG = logging.getLogger("demux")

_MOST_WAIT_S = 60.0

# yields how each task ended, in order of time; a task that was not begun when work was to stop is left out
Decode = Callable[[tuple[Task, ...]], Iterator[TaskEnd[GameReport]]]


def decode_of(place: CommandContext, engine: Engine) -> Decode:
    """Return what decodes games, for all rounds of a command."""
    return _FleetEngine(place) if engine is Engine.FLEET else partial(_decode_by_streams, place)


def _decode_by_streams(place: CommandContext, tasks: tuple[Task, ...]) -> Iterator[TaskEnd[GameReport]]:
    """Decode each game by a stream of its own, some side by side."""
    yield from run_tasks(place.spark, tasks, lambda task: place.deserialize(task.game), place.settings.run, place.stop)


class _FleetEngine:
    """Decodes games by one fleet, which keeps what it knows from round to round."""

    def __init__(self, place: CommandContext) -> None:
        self._place = place
        self._fleet: Fleet | None = None
        self._visits = place.visits

    def __call__(self, tasks: tuple[Task, ...]) -> Iterator[TaskEnd[GameReport]]:
        """Yield how each task ended; transient failures are tried again, but not once `stop` is set."""
        run, stop = self._place.settings.run, self._place.stop
        waiting = {task.game: task for task in tasks}
        for tried in range(run.retries + 1):
            if not waiting or stop.is_set():
                return
            if tried:
                stop.wait(min(_MOST_WAIT_S, run.retry_wait_s * 2 ** (tried - 1)))
            again = tried < run.retries and not stop.is_set()
            for decoded in self._decode(tuple(waiting)):
                error = decoded.error
                if again and error is not None and error.kind is ErrorKind.TRANSIENT:
                    continue
                if error is None:
                    self._place.tag(decoded.game)
                report = None if error else decoded.report
                yield TaskEnd(waiting.pop(decoded.game), report, error, decoded.seconds, decoded.commit)

    def _decode(self, games: tuple[str, ...]) -> Iterator[GameResult]:
        ended: set[str] = set()
        try:
            for decoded in self._open_fleet().decode(games, datetime.now(timezone.utc)):
                ended.add(decoded.game)
                yield decoded
        except Exception as error:  # of each game that has not ended, as a stream would
            _LOG.exception("the fleet failed")
            # a table may have changed who can write it
            self._fleet = None
            failure = as_demux_error(error)
            yield from (GameResult(game, None, failure) for game in games if game not in ended)

    def _open_fleet(self) -> Fleet:
        place = self._place
        if self._fleet is None or self._visits != place.visits:
            # others were here: the tables are not what the fleet knows of them
            self._visits = place.visits
            self._fleet = Fleet(
                place.spark,
                place.layout,
                place.schemas,
                most_rows=place.settings.run.rows_per_game,
                threads=place.settings.run.parallelism,
                tables=place.tables,
                sink=place.settings.run.sink,
            )
        return self._fleet
