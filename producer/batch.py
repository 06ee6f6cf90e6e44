"""One batch of events: which game, version and fault each has, and its wrapper bytes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from producer import events
from producer.events import EventWriter, Words, payloads, random_words
from producer.faults import Fault, spoil
from producer.records import Records, head, wrap_payload

Made = Counter[tuple[str, Fault | None]]


@dataclass(frozen=True, slots=True)
class BatchRecipe:
    """The parameters that, with an event's number, decide its bytes.

    Attributes:
        writers: each game in its versions, as many for each.
        fault_rate: the share of events that have a fault, 0 to 1.
        faults: the kinds of fault, equally often.
        first: the event number whose record would have the time `now_us`; each later one is a microsecond later.
        now_us: microseconds since 1970; events happened in the hour before.
    """

    seed: int
    writers: Sequence[Sequence[EventWriter]]
    fault_rate: float
    faults: Sequence[Fault]
    partitions: int
    first: int
    now_us: int


def batch(recipe: BatchRecipe, first: int, count: int) -> tuple[Records, Made]:
    """Return the events `first` … `first + count - 1` in order, and how many there are by game and fault.

    An event is the same bytes in whatever batch it is made. Fault None counts the events without one.
    """
    words = random_words(recipe.seed, first, count)
    game_of = words[:, events.GAME] % np.uint64(len(recipe.writers))
    version_of = words[:, events.VERSION] % np.uint64(len(recipe.writers[0]))
    fault_of = _faults(recipe, words)
    values: list[bytes | None] = [None] * count
    for game, versions in enumerate(recipe.writers):
        for version, writer in enumerate(versions):
            positions = np.flatnonzero((game_of == game) & (version_of == version))
            _fill(values, positions, writer, words[positions], fault_of, recipe.now_us)
    games = [versions[0].game for versions in recipe.writers]
    keys = [game.name.encode() for game in games]
    records = Records(
        values,
        [keys[game] for game in game_of.tolist()],
        np.array([game.number % recipe.partitions for game in games], np.int32)[game_of],
        recipe.now_us + np.arange(first, first + count) - recipe.first,
    )
    return records, Counter((games[game].name, fault_of.get(at)) for at, game in enumerate(game_of.tolist()))


def _faults(recipe: BatchRecipe, words: Words) -> dict[int, Fault]:
    if not recipe.faults:
        return {}
    chance = (words[:, events.IS_FAULT] >> np.uint64(11)).astype(np.float64) / 2**53
    which = words[:, events.WHICH_FAULT] % np.uint64(len(recipe.faults))
    positions = np.flatnonzero(chance < recipe.fault_rate)
    return {at: recipe.faults[kind] for at, kind in zip(positions.tolist(), which[positions].tolist(), strict=True)}


def _fill(
    values: list[bytes | None],
    positions: npt.NDArray[np.intp],
    writer: EventWriter,
    words: Words,
    fault_of: dict[int, Fault],
    now_us: int,
) -> None:
    """Put the wrapper of each of the writer's events at its position."""
    head_bytes = head(writer.game.name, writer.schema_id)
    made = payloads(writer, words, now_us)
    details = words[:, events.FAULT_DETAIL].tolist()
    for at, payload, detail in zip(positions.tolist(), made, details, strict=True):
        fault = fault_of.get(at)
        if fault is None:
            values[at] = wrap_payload(head_bytes, payload)
        else:
            values[at] = spoil(fault, writer.game.name, writer.schema_id, payload, detail)
