"""How far a game is decoded: a position in bronze's log, which is a transaction's version in the game's table. Pure.

Whoever decodes rows of a game commits them with the position that follows on them, so rows and position cannot differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

# a transaction's version is a long: 2^20 files in one commit, and 2^43 commits
FILES_PER_COMMIT = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class BronzeOffset:
    """What a game reads next in bronze's log.

    Attributes:
        version: a commit.
        index: a file in what the commit added; those before it are read.
    """

    version: int
    index: int = 0

    @property
    def number(self) -> int:
        """The position as one number, in the same order: the transaction's version."""
        return self.version * FILES_PER_COMMIT + self.index

    @staticmethod
    def of(number: int) -> BronzeOffset:
        """Return the position that has this number."""
        return BronzeOffset(*divmod(number, FILES_PER_COMMIT))


START = BronzeOffset(0)


def position_in(offsets: str) -> BronzeOffset:
    """Return the position after a stream's batch, from the text of its file below `offsets` in the checkpoint.

    A batch takes all files of a commit (`stream.source`): it ends with the last one of a commit (Delta 2), or
    before the first one of the next, index -1 (Delta 3 and later).
    """
    offset = json.loads(offsets.split("\n")[-1])
    version = int(offset["reservoirVersion"])
    return BronzeOffset(version if int(offset["index"]) < 0 else version + 1)
