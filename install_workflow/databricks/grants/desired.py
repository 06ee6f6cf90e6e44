"""Which games there are in a workspace, and who should read the table of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from demux.core.errors import SettingsInvalid
from demux.core.names import names_of
from demux.core.settings.games import GrantsSettings
from demux.core.settings.settings import Settings
from install_workflow.databricks.diff.deployed_games import running
from install_workflow.databricks.jobs.job import DeployedJob
from install_workflow.planning.plan import WaitingGame

_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


@dataclass(frozen=True, slots=True)
class TableLocation:
    """Where the games' tables are; the full names as Unity Catalog has them, in lower case."""

    deployment: str
    catalog: str
    schema: str


@dataclass(frozen=True, slots=True)
class Readers:
    """The principals that should read the table of one game.

    Attributes:
        principals: sorted, each once; () = none.
    """

    game: str
    table: str
    principals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GrantedGames:
    """The games that the settings or the jobs have.

    Attributes:
        names: sorted.
        unnamed: keys of further games, sorted: a job cannot have every name, and then it has the key.
    """

    names: tuple[str, ...]
    unnamed: tuple[str, ...] = ()


def known_as(principal: str) -> str:
    """Return the name under which a principal is compared: the catalog takes and shows an e-mail address in any case.

    Names of groups differ by their case.
    """
    return principal.lower() if _EMAIL.fullmatch(principal) else principal


def place_of(settings: Settings) -> TableLocation:
    """Return where the tables are.

    Raises:
        SettingsInvalid: the settings do not say where; all that is missing at once.
    """
    deployment, tables = settings.databricks.name, settings.tables
    wanted = {"databricks.name": deployment, "tables.catalog": tables.catalog}
    wrong = [f"{key} is not set" for key, value in wanted.items() if value is None]
    if wrong or deployment is None or tables.catalog is None:
        raise SettingsInvalid(
            f"There is no telling which tables the grants are for: {'; '.join(wrong)}.",
            "Set it in the settings.",
            wrong=tuple(wrong),
        )
    catalog = tables.catalog.lower()
    return TableLocation(deployment, catalog, f"{catalog}.{tables.silver.lower()}")


def games_of(jobs: Iterable[DeployedJob], allowed: Collection[str], known: Iterable[str] = ()) -> GrantedGames:
    """Return the allowed games and those of the jobs; `known` are names for those that a task has by their key."""
    now = running(jobs, {*allowed, *known})
    return GrantedGames(tuple(sorted({*allowed, *now.games})), now.unnamed)


def readers_of(
    place: TableLocation, games: GrantedGames, grants: GrantsSettings, now: Mapping[str, Collection[str]] | None = None
) -> tuple[Readers, ...]:
    """Return every game with who should read its table, by game.

    Args:
        now: to whom we granted each table. Without a game's name a pattern cannot say whether they should keep it: they
            do.
    """
    now = now or {} if grants.patterns else {}
    named = [Readers(game, f"{place.schema}.{names_of(game).table}", _principals(game, grants)) for game in games.names]
    unnamed = [(key, f"{place.schema}.{key}") for key in games.unnamed]
    return (*named, *(Readers(key, table, tuple(sorted(now.get(table, ())))) for key, table in unnamed))


def waiting_of(games: GrantedGames, grants: GrantsSettings) -> Iterator[WaitingGame]:
    """Yield the games, or keys, that have readers in the settings and no name or no job in the workspace."""
    for game in sorted(grants.games.keys() - set(games.names)):
        yield WaitingGame(game, "neither games.allow nor a job has this game")
    for key in games.unnamed if grants.patterns else ():
        yield WaitingGame(key, "the jobs know it by this key only: put its name under games.allow")


def _principals(game: str, grants: GrantsSettings) -> tuple[str, ...]:
    suiting = (principals for pattern, principals in grants.patterns.items() if fnmatchcase(game, pattern))
    named = {*grants.games.get(game, ()), *(each for principals in suiting for each in principals)}
    return tuple(sorted({known_as(principal) for principal in named}))
