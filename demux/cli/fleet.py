"""The fleet engine as what runs a round's tasks: retries, stopping, and the catalog, as with a stream for each game."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timezone

from demux.cli.workplace import Workplace
from demux.errors import DemuxError, Kind
from demux.failures import named
from demux.reports import GameReport
from demux.settings import Engine
from deserializer.fleet.games import Decoded
from deserializer.fleet.run import Fleet
from install_workflow.engine import Ended
from install_workflow.plan import Task
from install_workflow.run import OnEnd, RunTasks

_LOG = logging.getLogger("demux")

_MOST_WAIT_S = 60.0


def engine_of(place: Workplace, engine: Engine) -> RunTasks | None:
    """Return what runs the games' tasks together, for all rounds of a command; None: each has a stream of its own."""
    return _Together(place) if engine is Engine.FLEET else None


class _Together:
    """Runs tasks by one fleet, which keeps what it knows from round to round."""

    def __init__(self, place: Workplace) -> None:
        self._place = place
        self._fleet: Fleet | None = None
        self._visits = place.visits

    def __call__(self, tasks: tuple[Task, ...], on_end: OnEnd) -> tuple[Ended[GameReport], ...]:
        """Return how each task ended, by game name; once `stop` is set no further try begins."""
        run, stop = self._place.settings.run, self._place.stop
        waiting = {task.game: task for task in tasks}
        ended: list[Ended[GameReport]] = []
        for tried in range(run.retries + 1):
            if not waiting or stop.is_set():
                break
            if tried:
                stop.wait(min(_MOST_WAIT_S, run.retry_wait_s * 2 ** (tried - 1)))
            again = tried < run.retries and not stop.is_set()

            def end(decoded: Decoded, again: bool = again) -> None:
                error = decoded.error or self._registered(decoded.game)
                if again and error is not None and error.kind is Kind.TRANSIENT:
                    return
                one = Ended(waiting.pop(decoded.game), None if error else decoded.report, error, decoded.seconds)
                ended.append(one)
                on_end(one)

            self._decode(tuple(waiting), end)
        return tuple(sorted(ended, key=lambda one: one.task.game))

    def _decode(self, games: tuple[str, ...], end: Callable[[Decoded], None]) -> None:
        told: set[str] = set()

        def once(decoded: Decoded) -> None:
            told.add(decoded.game)
            end(decoded)

        try:
            self._there().decode(games, datetime.now(timezone.utc), once)
        except Exception as error:  # told of each game, as a stream would
            _LOG.exception("the fleet failed")
            # a table may have changed who can write it
            self._fleet = None
            for game in games:
                if game not in told:
                    end(Decoded(game, None, named(error)))

    def _there(self) -> Fleet:
        place = self._place
        if self._fleet is None or self._visits != place.visits:
            # others were here: the tables are not what the fleet knows of them
            self._visits = place.visits
            self._fleet = Fleet(
                place.spark,
                place.layout,
                place.schemas,
                place.deserialize,
                most_rows=place.settings.run.rows_per_game,
                threads=place.settings.run.parallelism,
                tables=place.tables,
                sink=place.settings.run.sink,
            )
        return self._fleet

    def _registered(self, game: str) -> DemuxError | None:
        """Make the game's table known to the catalog, and return why that was not possible."""
        try:
            if self._place.catalog is not None:
                self._place.catalog.register_game(game)
        except DemuxError as error:
            return error
        return None
