"""`demux forget`: find a person's records in silver, quarantine and bronze, and remove them for good."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone

import typer
from rich.console import RenderableType
from rich.table import Table

from demux.cli.command import Pace, command_context, console
from demux.cli.output.print_json import print_json
from demux.cli.output.questions import ask_to_remove
from demux.cli.repair.forget_text import found_content, found_text, left_text, removed_text
from demux.core.causes import Stage
from demux.core.delta.bronze_games import games_in_bronze
from demux.core.errors import ExitCode, PredicateInvalid, SettingsInvalid
from demux.core.names import names_of
from demux.core.root.lock import Access
from demux.core.settings.settings import Settings
from demux.core.text import counted, printable
from demux.operations.erasure.requests import ErasureRequest, carry_out, unfinished, write_down
from demux.operations.erasure.results import ALL_READ, RemovedRows, SearchResult, require_some
from demux.operations.erasure.search import (
    SearchScope,
    columns_of,
    rows_after,
    searched,
    searched_without_game,
    session_of,
)
from demux.operations.predicate.binder import fit, missing_from, near, unknown_column
from demux.operations.quarantine.filter import QuarantineFilter, require_game
from demux.pipeline.context import CommandContext
from demux.pipeline.drain import drain
from demux.pipeline.engines import decode_of
from demux.pipeline.read_offsets import read_batch
from demux.pipeline.round import record_of
from install_workflow.planning.plan import Task

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
    wait: bool,
    yes: bool,
) -> None:
    """Remove a person's records from silver, bronze and quarantine, bytes included; what goes is listed before."""
    # takes a while to import
    from demux.operations.predicate.parser import parse

    if json and not dry_run:
        raise SettingsInvalid("--json is of --dry-run.", "Give both, or leave out --json; nothing was removed.")
    predicate = parse(where)
    if not force:
        require_some(predicate, ())
    with command_context(settings, "forget", Access.LOOK if dry_run else Access.TURNS, wait=wait) as place:
        scope = SearchScope(session_of(place.spark), place.layout, place.schemas, predicate, unreadable_too)
        work = _Forgetting(place, scope, game, dry_run=dry_run, force=force)
        code = work.run(lambda: ask_to_remove(yes), json=json)
    raise typer.Exit(code)


class _Forgetting:
    """One request, game by game."""

    def __init__(
        self, place: CommandContext, scope: SearchScope, games: Sequence[str], *, dry_run: bool, force: bool
    ) -> None:
        self._place = place
        self._scope = scope
        self._wanted = games
        self._dry_run = dry_run
        self._force = force
        self._pace = Pace(place, _STEP_S)

    def run(self, ask: Callable[[], None], *, json: bool) -> ExitCode:
        """Return how it ended."""
        games = self._games()
        _require_columns(self._scope, games)
        finished = self._finish()
        found = self._search(games)
        if json:
            print_json(found_content(found))
            return ExitCode.OK
        _print(found_text(found))
        if not any(one.rows for one in found):
            console.print("no record matches")
        elif self._dry_run:
            console.print("nothing was removed")
        else:
            if not self._force:
                require_some(self._scope.predicate, found)
            # a person who thinks about the answer must not hold up a stream
            with self._place.away():
                ask()
            finished += self._remove(one for one in found if one.rows)
        if finished:
            _print(removed_text(finished))
        left = [*left_text(found, self._scope.unreadable_too)]
        _print(left)
        return ExitCode.UNSEARCHED if left and not self._dry_run else ExitCode.OK

    def _games(self) -> list[str]:
        """Return the chosen games; raises `GameUnknown`."""
        spark, layout = self._place.spark, self._place.layout
        known = {*self._place.control.known_games(), *games_in_bronze(spark, layout)}
        if layout.storage.table_exists(layout.quarantine):
            rows = self._scope.table(layout.quarantine).where(QuarantineFilter(stage=Stage.SILVER).sql())
            known |= {row.game_name for row in rows.select("game_name").distinct().collect()}
        for name in self._wanted:
            require_game(name, known)
        return sorted(set(self._wanted) or known)

    def _finish(self) -> list[RemovedRows]:
        """Return what was removed of requests that were killed; of one that only looks, nothing."""
        left = unfinished(self._place.spark, self._place.layout)
        if self._dry_run:
            if left:
                console.print(f"{counted(len(left), 'part')} of requests before this are not done: without --dry-run")
            return []
        return [self._carried_out(request, self._read_by(request.game)) for request in left]

    def _search(self, games: Iterable[str]) -> list[SearchResult]:
        found = []
        with console.status("searching …"):
            for name in games:
                self._step()
                with searched(self._scope, name, self._read_batch(name)) as search:
                    found.append(search.found)
            if not self._wanted:
                self._step()
                with searched_without_game(self._scope) as search:
                    found.append(search.found)
        return found

    def _remove(self, found: Iterable[SearchResult]) -> list[RemovedRows]:
        """Return what was removed; searched again, as others may have written meanwhile."""
        removed = []
        request_id = uuid.uuid4().hex[:12]
        with console.status("removing …"):
            for one in found:
                self._step()
                again = (
                    searched_without_game(self._scope)
                    if one.game is None
                    else searched(self._scope, one.game, self._read_batch(one.game))
                )
                request = ErasureRequest(request_id, one.game)
                with again as search:
                    if search.rows is None:
                        continue
                    write_down(self._place.spark, self._place.layout, request, search.rows, datetime.now(timezone.utc))
                removed.append(self._carried_out(request))
        return removed

    def _carried_out(self, request: ErasureRequest, read: int | None = None) -> RemovedRows:
        removed = carry_out(self._place.spark, self._place.layout, request, read)
        # no text says who it was
        logging.getLogger("demux").info("forget: %s", removed)
        return removed

    def _read_by(self, game: str | None) -> int:
        return ALL_READ if game is None else read_batch(self._place.spark, self._place.layout, game)

    def _read_batch(self, game: str) -> int:
        """Return the last batch that the game has read, after it has read its unread rows, if it may and can."""
        spark, layout = self._place.spark, self._place.layout
        batch = read_batch(spark, layout, game)
        if self._dry_run or not rows_after(self._scope, game, batch) or not self._is_decoded_here(game):
            return batch
        self._decode(Task(game, names_of(game).task_key, "this machine"))
        return read_batch(spark, layout, game)

    def _is_decoded_here(self, game: str) -> bool:
        known = self._place.control.known_games().get(game)
        if known is not None and known.cluster is not None:
            return True
        return self._place.layout.storage.table_exists(self._place.layout.silver(names_of(game).key))

    def _decode(self, task: Task) -> None:
        """Decode what waits of a game by the engine of the settings; a failure is printed, and its rows wait."""
        place = self._place
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
            raise PredicateInvalid(f"Of the game {printable(game)}: {error.cause}", error.remedy, game=game) from error
    if missing and all(missing.values()):
        nearest = [path for game, lacks in missing.items() for path in near(lacks[0], columns[game])]
        first = next(iter(missing.values()))[0]
        raise unknown_column(first, tuple(dict.fromkeys(nearest))[:_MOST_NEAR])


def _print(lines: Iterable[RenderableType]) -> None:
    for line in lines:
        console.print(line, soft_wrap=not isinstance(line, Table))
