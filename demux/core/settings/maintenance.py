"""Settings of maintenance: how often, how small files are joined, how long what is not needed any more is kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from demux.core.settings.types import Age, Game, Section, Text, timedelta_of
from demux.core.time_expressions import age_of

NEVER = "never"
_LEAST_EVERY = timedelta(minutes=1)


def _every(text: str) -> str:
    found = age_of(text)
    if text.strip() != NEVER and (found is None or found < _LEAST_EVERY):
        raise ValueError("expected never, or a time of a minute or more, such as 1d or 12h")
    return text.strip()


Every = Annotated[str, AfterValidator(_every)]
Columns = Annotated[tuple[Text, ...], Field(max_length=8)]


class MaintainSettings(Section):
    """What `demux maintain` does, and how often it happens by itself."""

    every: Every = Field(
        default="1d",
        description="How often tables are maintained by themselves, such as 1d or 12h: by `demux run` at the end of a "
        "round, in a deployment by a job of its own. never: only by `demux maintain`.",
    )
    keep: Age = Field(
        default="7d",
        description="How long files stay that no table needs any more, for who reads older versions; an hour at least.",
    )
    bronze_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="Days after which rows leave bronze that their game has read, and that are not in quarantine. "
        "Default: none ever does.",
    )
    keep_rounds: Age = Field(
        default="90d", description="How long the records of finished tasks stay in control/rounds; the newest do."
    )
    target_bytes: int = Field(
        default=128 * 2**20,
        ge=2**16,
        le=2**34,
        description="Size up to which small files are joined; those of half of it or more are left alone.",
    )
    zorder: Columns = Field(
        default=(),
        description="Columns by which the rows of silver tables are brought together (ZORDER BY); those that a table "
        "does not have do not count. Default: files are joined in the order in which they came.",
    )
    zorder_of: Mapping[Game, Columns] = Field(
        default={}, description="Games with columns of their own, {game: [column]}, such as {chess: [user_name]}."
    )

    @property
    def interval(self) -> timedelta | None:
        """How often tables are maintained by themselves; None for never."""
        return None if self.every == NEVER else timedelta_of(self.every)

    @property
    def kept(self) -> timedelta:
        """How long files stay that no table needs."""
        return timedelta_of(self.keep)

    @property
    def rounds_kept(self) -> timedelta:
        """How long records of finished tasks stay."""
        return timedelta_of(self.keep_rounds)

    def order_of(self, game: str | None) -> tuple[str, ...]:
        """Return the columns by which the rows of the game's table are brought together."""
        return self.zorder if game is None else tuple(self.zorder_of.get(game, self.zorder))
