"""Which task reads which files: about the same bytes for each, a game in one piece unless it is too large. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace

from deserializer.fleet.work import GameFiles


@dataclass(frozen=True, slots=True)
class Sized:
    """Files of a game to read, with the bytes of each file."""

    files: GameFiles
    bytes: tuple[int, ...]


def spread(works: Iterable[Sized], tasks: int) -> tuple[tuple[GameFiles, ...], ...]:
    """Return what each task does; no task is empty.

    A game with more than a task's share is cut between its files, so that several tasks work on it. The largest part
    comes first, to the task that has least.
    """
    works = tuple(works)
    share = sum(sum(work.bytes) for work in works) / max(1, tasks)
    parts = [part for work in works for part in _parts(work, share)]
    heap: list[tuple[int, int, list[GameFiles]]] = [(0, number, []) for number in range(tasks)]
    for part in sorted(parts, key=lambda part: (-sum(part.bytes), part.files.game, part.files.paths)):
        least, number, mine = heapq.heappop(heap)
        heapq.heappush(heap, (least + sum(part.bytes), number, [*mine, part.files]))
    return tuple(tuple(mine) for _, _, mine in sorted(heap, key=lambda each: each[1]) if mine)


def _parts(work: Sized, share: float) -> list[Sized]:
    ends: list[int] = []
    size = 0
    for at, each in enumerate(work.bytes):
        if size and size + each > share:
            ends.append(at)
            size = 0
        size += each
    bounds = zip([0, *ends], [*ends, len(work.bytes)], strict=True)
    return [
        Sized(replace(work.files, paths=work.files.paths[begin:end]), work.bytes[begin:end]) for begin, end in bounds
    ]
