"""Which task reads which files: about the same bytes for each, a game in one piece unless it is too large. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from deserializer.fleet.worker import GameFiles

T = TypeVar("T")


def spread(works: Iterable[GameFiles], tasks: int) -> tuple[tuple[GameFiles, ...], ...]:
    """Return what each task does; no task is empty.

    A game with more than a task's share is cut between its files, so that several tasks work on it; one whose rows
    replace others only where no task has to know all of them.
    """
    works = tuple(works)
    share = sum(sum(work.sizes) for work in works) / max(1, tasks)
    parts = [part for work in works for part in _parts_of(work, share)]
    parts.sort(key=lambda part: (part.game, part.paths))
    return balance_parts([(sum(part.sizes), part) for part in parts], tasks)


def balance_parts(parts: Iterable[tuple[int, T]], tasks: int) -> tuple[tuple[T, ...], ...]:
    """Return what each task does, of parts with their sizes; the largest comes first, to the task that has least.

    No task is empty.
    """
    heap: list[tuple[int, int, list[T]]] = [(0, number, []) for number in range(tasks)]
    for size, part in sorted(parts, key=lambda each: -each[0]):
        least, number, mine = heapq.heappop(heap)
        heapq.heappush(heap, (least + size, number, [*mine, part]))
    return tuple(tuple(mine) for _, _, mine in sorted(heap, key=lambda each: each[1]) if mine)


def _parts_of(work: GameFiles, share: float) -> list[GameFiles]:
    return _parts(work, share) if work.replaces is None or work.replaces.is_divisible else [work]


def _parts(work: GameFiles, share: float) -> list[GameFiles]:
    ends: list[int] = []
    size = 0
    for at, each in enumerate(work.sizes):
        if size and size + each > share:
            ends.append(at)
            size = 0
        size += each
    bounds = zip([0, *ends], [*ends, len(work.sizes)], strict=True)
    return [replace(work, paths=work.paths[begin:end], sizes=work.sizes[begin:end]) for begin, end in bounds]
