"""The loop that learns: files are decoded; unknown schemas of their rows are looked up, and they are decoded again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from demux.core.delta.parquet_writer import TableFile
from demux.core.error_mapping import as_demux_error
from demux.core.errors import DemuxError, TaskFailed
from demux.core.schemas.ref import SchemaRef
from demux.core.storage.files import Storage
from deserializer.decoders.schema_decision import Decisions
from deserializer.fleet.spark_job import Results
from deserializer.fleet.worker import GameFiles, WrittenGame
from deserializer.silver.rewrite import in_columns

# the first finds out which schemas the rows have
_MOST_WAVES = 3
RefsByGame = Mapping[str, Mapping[SchemaRef, int]]


def write_in_waves(
    storage: Storage,
    works: Sequence[GameFiles],
    run: Callable[[Sequence[GameFiles]], Results],
    known: Callable[[str], Decisions],
    learn: Callable[[RefsByGame], Mapping[str, DemuxError]],
    again: Callable[[str, frozenset[str]], GameFiles],
) -> tuple[dict[str, list[WrittenGame]], list[TableFile]]:
    """Return what became of each game's files, by game, and the files for quarantine; nothing is committed.

    Where columns become wider for rows of a later wave, what the game has written so far is rewritten.

    Args:
        storage: how files are reached.
        works: what to do.
        run: runs it in Spark's workers.
        known: says what is decided about the schemas of a game.
        learn: decides about further ones, by game with their rows; says why that was not possible for some games.
        again: gives the work of a game for some of its files, by what is decided then.
    """
    written: defaultdict[str, list[WrittenGame]] = defaultdict(list)
    bad: list[TableFile] = []
    paths = {work.game: work.table for work in works}
    for _ in range(_MOST_WAVES):
        done, files = run(works)
        bad += files
        unknown: defaultdict[str, list[WrittenGame]] = defaultdict(list)
        for part in done:
            (unknown if part.unknown else written)[part.game].append(part)
        before = {game: known(game).columns for game in unknown}
        refs = {game: sum((Counter(part.unknown) for part in parts), Counter()) for game, parts in unknown.items()}
        failed = dict(learn(refs))
        works = []
        for game in unknown.keys() - failed.keys():
            try:
                if known(game).widened:
                    columns = known(game).columns
                    written[game] = [
                        replace(part, silver=in_columns(storage, part.silver, paths[game], before[game], columns))
                        for part in written[game]
                    ]
                works.append(again(game, frozenset(path for part in unknown[game] for path in part.paths)))
            except Exception as error:  # one game's failure must not stop its neighbours
                failed[game] = as_demux_error(error)
        for game, why in failed.items():
            written[game].append(WrittenGame(game, error=why))
        if not works:
            break
    for work in works:
        written[work.game].append(WrittenGame(work.game, error=_unsettled(work.game)))
    return written, bad


def error_of(parts: Sequence[WrittenGame]) -> DemuxError | None:
    """Return why a game was not written; None where it was."""
    return next((part.error for part in parts if part.error is not None), None)


def _unsettled(game: str) -> DemuxError:
    return TaskFailed(
        f"Rows of {game} still had unknown schemas after {_MOST_WAVES} looks.", "Run the same command again.", game=game
    )
