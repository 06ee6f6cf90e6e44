"""Which files of bronze a game has still to read, and its offset after each. Pure."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from demux.core.delta.log import AddedFile, Commit
from demux.core.errors import BronzeRewritten
from demux.core.streaming.bronze_offset import FILES_PER_COMMIT, BronzeOffset

# a file, and its place in what its commit added
Added = tuple[int, AddedFile]
_Changes = tuple[Mapping[str | None, Sequence[Added]], Mapping[str | None, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read together or not at all.

    Attributes:
        files: all of one game.
        after: the offset of the game in bronze when they are read.
    """

    files: tuple[AddedFile, ...]
    after: BronzeOffset

    @property
    def rows(self) -> int:
        """About how many rows they have."""
        return sum(_rows(file) for file in self.files)


class CommitsByGame:
    """Commits of bronze in order, none left out, with what each did to each game's files; made for one round.

    To look for a game's among the files of all would take the files times the games.
    """

    def __init__(self, commits: Iterable[Commit]) -> None:
        """Prepare; a commit is parsed on its first use."""
        self._commits = tuple(commits)
        self._versions = [commit.version for commit in self._commits]
        self._changes: dict[int, _Changes] = {}

    def of(self, game: str, since: int) -> Iterator[tuple[Commit, Sequence[Added], Sequence[str]]]:
        """Yield each commit from this version on, the files that it added for the game, and the paths it took away."""
        for commit in self._commits[bisect_left(self._versions, since) :]:
            if commit.version not in self._changes:
                self._changes[commit.version] = _taken_apart(commit)
            added, removed = self._changes[commit.version]
            yield commit, added.get(game, ()), removed.get(game, ())


def _taken_apart(commit: Commit) -> _Changes:
    added: defaultdict[str | None, list[Added]] = defaultdict(list)
    removed: defaultdict[str | None, list[str]] = defaultdict(list)
    for index, file in enumerate(commit.added):
        added[file.partition].append((index, file))
    for path, partition in commit.removed.items():
        removed[partition].append(path)
    return added, removed


def pending(commits: CommitsByGame, game: str, since: BronzeOffset) -> tuple[FileGroup, ...]:
    """Return what the game has still to read, in order.

    A commit that takes files away drops those that wait. What it writes again in their place is read in their place,
    and left out where all of them were read before.

    Args:
        commits: bronze's, from `since.version` on; older ones are not looked at.
        game: the exact name.
        since: the offset of the game in bronze.

    Raises:
        BronzeRewritten: a commit wrote files again of which some were read and some not.
    """
    waiting: dict[str, FileGroup] = {}
    for commit, added, removed in commits.of(game, since.version):
        mine = [(index, file) for index, file in added if BronzeOffset(commit.version, index) >= since]
        # the log does not always say whose a file was
        taken = list(dict.fromkeys([*removed, *(path for path in waiting if path in commit.removed)]))
        for piece in _replaced(commit, mine, taken, waiting, game) if taken else _separate(commit, mine):
            waiting |= dict.fromkeys((file.path for file in piece.files), piece)
    return tuple(dict.fromkeys(waiting.values()))


def take(pieces: Sequence[FileGroup], most_rows: int) -> tuple[FileGroup, ...]:
    """Return as many pieces from the beginning as have this many rows together, and one at least."""
    taken: list[FileGroup] = []
    rows = 0
    for piece in pieces:
        rows += piece.rows
        if taken and rows > most_rows:
            break
        taken.append(piece)
    return tuple(taken)


def _separate(commit: Commit, mine: Sequence[tuple[int, AddedFile]]) -> list[FileGroup]:
    if commit.at_once or len(commit.added) > FILES_PER_COMMIT:
        return [FileGroup(tuple(file for _, file in mine), BronzeOffset(commit.version + 1))] if mine else []
    ends = [BronzeOffset(commit.version, index + 1) for index, _ in mine[:-1]]
    return [
        FileGroup((file,), end) for (_, file), end in zip(mine, [*ends, BronzeOffset(commit.version + 1)], strict=False)
    ]


def _replaced(
    commit: Commit,
    mine: Sequence[tuple[int, AddedFile]],
    taken: Sequence[str],
    waiting: dict[str, FileGroup],
    game: str,
) -> list[FileGroup]:
    """Remove the files, and return their replacement."""
    unread = [path for path in taken if path in waiting]
    for path in unread:
        piece = waiting.pop(path)
        left = tuple(file for file in piece.files if file.path in waiting)
        # in their place: the order is that of the positions
        waiting |= {file.path: FileGroup(left, piece.after) for file in left}
    if not mine or not unread:
        return []
    if len(unread) < len(taken):
        raise BronzeRewritten(
            f"Commit {commit.version} of bronze rewrote {len(taken)} files of the game, {len(unread)} of them "
            "before they were read.",
            f"Make the game's table again from bronze: `demux rebuild --game {shlex.quote(game)}`.",
            game=game,
            version=commit.version,
        )
    # only whole: read again in part, nothing would say what the rest replaces
    return [FileGroup(tuple(file for _, file in mine), BronzeOffset(commit.version + 1))]


def _rows(file: AddedFile) -> int:
    # where the log does not say: a record of 100 bytes is a small one
    return file.rows if file.rows is not None else max(1, file.bytes // 100)
