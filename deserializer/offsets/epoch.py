"""Who continues with a game, and from where, as one number: the version of a transaction in its silver table. Pure.

Spark's writer takes a version that is not above the one before for a write that was done already. So the number only
grows: a turn stands before the position, one more each time that the game changes hands.
"""

from __future__ import annotations

from dataclasses import dataclass

from deserializer.offsets.unread_files import BronzeOffset

# 2^15 turns, and 2^28 commits with 2^20 files make a long
_POSITIONS = 1 << 48


@dataclass(frozen=True, slots=True)
class GameEpoch:
    """A turn of the fleet or of a stream.

    Attributes:
        number: even ones are the fleet's.
        position: where the fleet stands in bronze; where the stream begins.
    """

    number: int
    position: BronzeOffset

    @staticmethod
    def of(version: int) -> GameEpoch:
        """Return what a transaction's version says."""
        number, position = divmod(version, _POSITIONS)
        return GameEpoch(number, BronzeOffset.of(position))

    @property
    def version(self) -> int:
        """The transaction's version."""
        return self.number * _POSITIONS + self.position.number

    @property
    def is_the_fleets(self) -> bool:
        """Whether the fleet decoded the game last."""
        return self.number % 2 == 0

    def of_stream(self) -> GameEpoch:
        """Return the turn of the stream that follows on the fleet's."""
        # all that was there is read, and a stream begins with a whole commit
        begin = self.position if self.position.index == 0 else BronzeOffset(self.position.version + 1)
        return GameEpoch(self.number + 1, begin)


def fleet_epoch(version: int | None) -> int:
    """Return the number of the fleet's own turn, now or next, where the table's transaction has this version."""
    number = 0 if version is None else GameEpoch.of(version).number
    return number + number % 2
