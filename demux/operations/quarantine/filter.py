"""A filter of quarantine, for Arrow and for SQL. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from difflib import get_close_matches

import pyarrow as pa
import pyarrow.compute as pc

from demux.core.causes import Cause, Stage
from demux.core.errors import GameUnknown
from demux.core.names import sql_string
from demux.core.text import printable

_MOST_NEAR = 3
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class QuarantineFilter:
    """Conditions on rows of quarantine; None or empty: any.

    Attributes:
        game: the exact name. Only rows of stage silver have a game: a name that was refused is none.
    """

    game: str | None = None
    causes: tuple[Cause, ...] = ()
    stage: Stage | None = None
    since: datetime | None = None
    before: datetime | None = None
    record_id: str | None = None

    @property
    def of_stage(self) -> Stage | None:
        """The stage, which a game decides too."""
        return Stage.SILVER if self.game is not None else self.stage

    def among(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the selected rows, which have the columns that the filter names, and `quarantined_at`."""
        chosen = pa.array([True] * len(rows))
        for wanted in self._wanted(rows):
            chosen = pc.and_(chosen, pc.fill_null(wanted, False))
        return chosen

    def _wanted(self, rows: pa.RecordBatch) -> Iterable[pa.BooleanArray]:
        if self.game is not None:
            yield pc.equal(rows.column("game_name"), self.game)
        if self.of_stage is not None:
            yield pc.equal(rows.column("stage"), self.of_stage.value)
        if self.causes:
            yield pc.is_in(rows.column("cause"), pa.array([cause.value for cause in self.causes], pa.string()))
        if self.record_id is not None:
            yield pc.equal(rows.column("record_id"), self.record_id)
        at = rows.column("quarantined_at")
        if self.since is not None:
            yield pc.greater_equal(at, pa.scalar(self.since, _TIME))
        if self.before is not None:
            yield pc.less(at, pa.scalar(self.before, _TIME))

    def sql(self, table: str = "") -> str:
        """Return the SQL condition; `table` is a prefix of the columns, such as `q.`."""
        parts = []
        if self.game is not None:
            parts.append(f"{table}game_name = {sql_string(self.game)}")
        if self.of_stage is not None:
            parts.append(f"{table}stage = {sql_string(self.of_stage.value)}")
        if self.causes:
            parts.append(f"{table}cause IN ({', '.join(sql_string(cause.value) for cause in self.causes)})")
        if self.record_id is not None:
            parts.append(f"{table}record_id = {sql_string(self.record_id)}")
        if self.since is not None:
            parts.append(f"{table}quarantined_at >= {_sql_time(self.since)}")
        if self.before is not None:
            parts.append(f"{table}quarantined_at < {_sql_time(self.before)}")
        return " AND ".join(parts) or "TRUE"


def require_game(game: str | None, known: Iterable[str]) -> None:
    """Check that a game is one of those that are known; None is.

    Raises:
        GameUnknown: it is not; names what is spelled nearly so.
    """
    names = set(known)
    if game is None or game in names:
        return
    lower: dict[str, str] = {}
    for name in sorted(names):
        lower.setdefault(name.lower(), name)
    near = [lower[name] for name in get_close_matches(game.lower(), lower, n=_MOST_NEAR)]
    hint = f" Did you mean {' or '.join(repr(printable(name)) for name in near)}?" if near else ""
    raise GameUnknown(
        f"No game {printable(game)!r} is known.{hint}",
        "See `demux status` for the games; names are exact, upper and lower case included.",
        game=game,
        near=tuple(near),
    )


def _sql_time(moment: datetime) -> str:
    return f"TIMESTAMP'{moment.astimezone(timezone.utc).isoformat()}'"
