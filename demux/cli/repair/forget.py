"""`demux forget`: find a person's records in silver, quarantine and bronze, and remove them for good."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import TypeVar

import typer
from rich.console import RenderableType
from rich.table import Table

from demux.cli.command import (
    Pace,
    ask_to_remove,
    command_context,
    console,
    held_root,
    session_beside,
    session_to_look,
)
from demux.cli.output.print_json import print_json
from demux.cli.repair.forget_text import found_content, found_text, left_text, removed_text
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.errors import ExitCode, PredicateInvalid, SettingsInvalid, TableUnsuited
from demux.core.names import names_of
from demux.core.root.layout import layout_of
from demux.core.root.lock import Access
from demux.core.settings.settings import Settings
from demux.core.text import count_text, printable
from demux.operations.erasure.requests import ErasureRequest, carry_out, unfinished_requests, write_down
from demux.operations.erasure.results import ALL_READ, RemovedRows, SearchResult, require_some
from demux.operations.erasure.search import (
    SearchOutcome,
    SearchScope,
    columns_of,
    quarantined_games,
    rows_after,
    search_game,
    search_without_game,
    session_of,
)
from demux.operations.predicate.binder import fit, missing_from, near, unknown_column
from demux.operations.quarantine.filter import require_game
from demux.pipeline.context import CommandContext, HeldRoot, root_of
from demux.pipeline.drain import drain
from demux.pipeline.engines import decode_of
from demux.pipeline.read_offsets import read_batch
from demux.pipeline.round import record_of
from install_workflow.planning.plan import Task

_T = TypeVar("_T")

# others may have the root after so many seconds of work
_STEP_S = 5.0
_MOST_NEAR = 3


def forget(
    settings: Settings,
    where: str,
    game: list[str],
    dry_run: bool,
    json: bool,
    unreadable_too: bool,
    force: bool,
    by_spark: bool,
    wait: bool,
    yes: bool,
) -> None:
    """Remove a person's records from silver, bronze and quarantine, bytes included; they are listed first."""
    # takes a while to import
    from demux.operations.predicate.parser import parse

    if json and not dry_run:
        raise SettingsInvalid("--json is of --dry-run.", "Give both, or leave out --json; nothing was removed.")
    predicate = parse(where)
    if not force:
        require_some(predicate, ())
    layout = layout_of(settings)
    with ExitStack() as stack:
        if dry_run:
            spark = stack.enter_context(session_to_look(settings, "forget", by_spark=by_spark))
            place = root_of(settings, spark, threading.Event())
        elif by_spark or not layout.storage.reaches_tables(settings.root):
            place = stack.enter_context(command_context(settings, "forget", Access.TURNS, wait=wait))
            spark = place.spark
        else:
            place = stack.enter_context(held_root(settings, "forget", Access.TURNS, wait=wait))
            spark = None
        scope = SearchScope(spark and session_of(spark), layout, place.schemas, predicate, unreadable_too)
        work = _Forgetting(
            place, scope, game, dry_run=dry_run, force=force, start=lambda: stack.enter_context(session_beside(place))
        )
        code = work.run(lambda: ask_to_remove(yes), json=json)
    raise typer.Exit(code)


class _Forgetting:
    """One request, game by game."""

    def __init__(
        self,
        place: HeldRoot,
        scope: SearchScope,
        games: Sequence[str],
        *,
        dry_run: bool,
        force: bool,
        start: Callable[[], CommandContext],
    ) -> None:
        """Prepare; `start` gives the root a session, which only what changes something may ask for."""
        self._place = place
        self._scope = scope
        self._wanted = games
        self._dry_run = dry_run
        self._force = force
        self._start = start
        self._pace = Pace(place, _STEP_S)

    def run(self, ask: Callable[[], None], *, json: bool) -> ExitCode:
        """Return how it ended."""
        games = self._with_spark(self._games)
        self._with_spark(lambda: _require_columns(self._scope, games))
        finished = self._finish()
        results = self._search(games)
        if json:
            print_json(found_content(results))
            return ExitCode.OK
        _print(found_text(results))
        if not any(one.rows for one in results):
            console.print("no record matches")
        elif self._dry_run:
            console.print("nothing was removed")
        else:
            if not self._force:
                require_some(self._scope.predicate, results)
            # a person who thinks about the answer must not hold up a stream
            with self._place.away():
                ask()
            finished += self._remove(one for one in results if one.rows)
        if finished:
            _print(removed_text(finished))
        left = [*left_text(results, self._scope.unreadable_too)]
        _print(left)
        return ExitCode.UNSEARCHED if left and not self._dry_run else ExitCode.OK

    def _games(self) -> list[str]:
        """Return the chosen games; raises `GameUnknown`."""
        known = {
            *self._place.control.known_games(),
            *games_in_bronze(self._scope.spark, self._scope.layout),
            *quarantined_games(self._scope),
        }
        for name in self._wanted:
            require_game(name, known)
        return sorted(set(self._wanted) or known)

    def _finish(self) -> list[RemovedRows]:
        """Finish requests that were killed, and return their results; none with `--dry-run`."""
        left = unfinished_requests(self._scope.spark, self._scope.layout)
        if self._dry_run:
            if left:
                console.print(
                    f"{count_text(len(left), 'part')} of requests before this are not done: without --dry-run"
                )
            return []
        return [self._carried_out(request, self._last_batch_read(request.game)) for request in left]

    def _search(self, games: Iterable[str]) -> list[SearchResult]:
        found = []
        with console.status("searching …"):
            for name in [*games, *([] if self._wanted else [None])]:
                self._step()
                found.append(self._with_spark(partial(self._search_one, name)))
        return found

    def _search_one(self, game: str | None) -> SearchResult:
        with self._search_game(game) as search:
            return search.result

    def _remove(self, results: Iterable[SearchResult]) -> list[RemovedRows]:
        """Remove the records, return the results; games are searched again, as others may have written meanwhile."""
        removed = []
        request_id = uuid.uuid4().hex[:12]
        with console.status("removing …"):
            for one in results:
                self._step()
                request = ErasureRequest(request_id, one.game)
                if self._with_spark(partial(self._written_down, request)):
                    removed.append(self._carried_out(request))
        return removed

    def _written_down(self, request: ErasureRequest) -> bool:
        """Write down what goes of a game; return whether there is anything."""
        with self._search_game(request.game) as search:
            if search.rows is not None:
                now = datetime.now(timezone.utc)
                write_down(self._scope.spark, self._scope.layout, request, search.rows, now)
            return search.rows is not None

    def _search_game(self, game: str | None) -> AbstractContextManager[SearchOutcome]:
        if game is None:
            return search_without_game(self._scope)
        return search_game(self._scope, game, self._read_batch(game))

    def _carried_out(self, request: ErasureRequest, read: int | None = None) -> RemovedRows:
        removed = self._with_spark(lambda: carry_out(self._scope.spark, self._scope.layout, request, read))
        # no text says who it was
        logging.getLogger("demux").info("forget: %s", removed)
        return removed

    def _with_spark(self, step: Callable[[], _T]) -> _T:
        """Return the result of a step that may be repeated, with a session where a table asks for one."""
        try:
            return step()
        except TableUnsuited:
            if self._dry_run or self._scope.spark is not None:
                raise
            self._session()
            return step()

    def _session(self) -> CommandContext:
        if not isinstance(self._place, CommandContext):
            self._place = self._start()
            self._scope = replace(self._scope, spark=session_of(self._place.spark))
        return self._place

    def _last_batch_read(self, game: str | None) -> int:
        return ALL_READ if game is None else read_batch(self._scope.spark, self._scope.layout, game)

    def _read_batch(self, game: str) -> int:
        """Return the last batch that the game has read, after it has read its unread rows, if it may and can."""
        batch = self._last_batch_read(game)
        if self._dry_run or not rows_after(self._scope, game, batch) or not self._is_decoded_here(game):
            return batch
        self._decode(Task(game, names_of(game).task_key, "this machine"))
        return self._last_batch_read(game)

    def _is_decoded_here(self, game: str) -> bool:
        known = self._place.control.known_games().get(game)
        if known is not None and known.cluster is not None:
            return True
        return self._scope.layout.storage.table_exists(self._scope.layout.silver(names_of(game).key))

    def _decode(self, task: Task) -> None:
        """Decode the waiting rows of a game by the engine of the settings; a failure is printed, and the rows stay."""
        place = self._session()
        ended = tuple(drain((task,), decode_of(place, place.settings.task_engine), place.stop))
        place.control.close_round([record_of(end, uuid.uuid4().hex[:12]) for end in ended], None)
        for error in (end.error for end in ended if end.error is not None):
            console.print(f"{printable(task.game)}: {printable(str(error))}", style="red", soft_wrap=True)

    def _step(self) -> None:
        """Let others have the root, if we had it for a while; ends the command after a signal."""
        if self._place.stop.is_set():
            raise typer.Exit(ExitCode.INTERRUPTED)
        self._pace()


def _require_columns(scope: SearchScope, games: Iterable[str]) -> None:
    """Check that a table has what the predicate names, and that it fits all tables that have; without tables, nothing.

    Raises:
        PredicateInvalid: no table has, or it does not fit one.
    """
    tables = {game: columns_of(scope.spark, scope.layout, game) for game in games}
    columns = {game: found for game, found in tables.items() if found is not None}
    missing = {game: missing_from(scope.predicate, found) for game, found in columns.items()}
    for game in (game for game, lacks in missing.items() if not lacks):
        try:
            fit(scope.predicate, columns[game])
        except PredicateInvalid as error:
            raise PredicateInvalid(
                f"Of the game {printable(game)}: {error.message}", error.remedy, game=game
            ) from error
    if missing and all(missing.values()):
        nearest = [path for game, lacks in missing.items() for path in near(lacks[0], columns[game])]
        first = next(iter(missing.values()))[0]
        raise unknown_column(first, tuple(dict.fromkeys(nearest))[:_MOST_NEAR])


def _print(lines: Iterable[RenderableType]) -> None:
    for line in lines:
        console.print(line, soft_wrap=not isinstance(line, Table))
