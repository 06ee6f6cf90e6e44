"""Settings of the games: which get a table, how a schema may change it, which subjects are theirs, who may read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field

from demux.core.names import MAX_NAME_BYTES
from demux.core.settings.databricks.values import Principal
from demux.core.settings.types import Age, Game, Section, Text, timedelta_of


class SchemaChanges(Enum):
    """Whether a table takes a schema that would add a column or make one wider."""

    EVOLVE = "evolve"
    FREEZE = "freeze"
    ASK = "ask"


class Frozen(Enum):
    """What becomes of rows that have more than a frozen table has columns for."""

    QUARANTINE = "quarantine"
    RESCUE = "rescue"


@dataclass(frozen=True, slots=True)
class Contract:
    """What one game's table does with changed schemas.

    Attributes:
        approved: ids of the schemas, in the game's registry, that a person has approved; they count in mode ASK.
    """

    mode: SchemaChanges = SchemaChanges.EVOLVE
    frozen: Frozen = Frozen.QUARANTINE
    approved: frozenset[int] = frozenset()
    game: str = ""


EVOLVE = Contract()


GROUP = "game"
MAX_EXPRESSION = 500


def expression_mistake(expression: str) -> str | None:
    """Return the mistake in an expression for subjects, as a part of a sentence; None when it can be used."""
    if len(expression) > MAX_EXPRESSION:
        return f"expected {MAX_EXPRESSION} characters or less"
    try:
        # alone first: what is wrapped must not close our brackets
        _names(expression, [""])
        found = _names(_whole(expression), [""])
    except ValueError as error:
        return f"expected a regular expression (RE2, other groups as (?:…)): {error}"
    return None if found is not None else f"expected one group (?P<{GROUP}>…) in it"


def games_named(expression: str, subjects: Iterable[str]) -> frozenset[str]:
    """Return the games that subjects name; a subject that the expression does not match as a whole names none.

    Args:
        expression: one without `expression_mistake`.
    """
    return frozenset(_by_game(expression, frozenset(subjects)))


@dataclass(frozen=True, slots=True)
class SubjectRule:
    """Which subjects hold a game's schemas.

    Attributes:
        expression: the setting `games.subjects`; None: the subjects NAME and NAME-value hold the game's schemas.
        named: the setting `games.subjects_of`: further subjects, by game.
    """

    game: str
    expression: str | None = None
    named: Mapping[str, Collection[str]] = field(default_factory=dict)

    def own(self, subjects: frozenset[str]) -> tuple[str, ...]:
        """Return the game's subjects among these, in order of name."""
        bear_name = (
            subjects & {self.game, f"{self.game}-value"}
            if self.expression is None
            else _by_game(self.expression, subjects).get(self.game, frozenset())
        )
        return tuple(sorted(bear_name | subjects.intersection(self.named.get(self.game, ()))))

    def of_another(self, subject: str) -> str | None:
        """Return the other game that the settings give the subject to, the first by name; None: they give it to none.

        Without `games.subjects`, only `games.subjects_of` gives a subject to a game: `events-value` may be any game's.
        """
        games = {game for game, subjects in self.named.items() if subject in subjects}
        if self.expression is not None:
            games |= _by_game(self.expression, frozenset({subject})).keys()
        return None if self.game in games else min(games, default=None)


@lru_cache(maxsize=1024)
def _by_game(expression: str, subjects: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """Return the subjects of each game that the expression names."""
    texts = sorted(subject for subject in subjects if _is_text(subject))
    found: defaultdict[str, set[str]] = defaultdict(set)
    for subject, game in zip(texts, _names(_whole(expression), texts) or (), strict=False):
        if game:
            found[game].add(subject)
    return {game: frozenset(names) for game, names in found.items()}


def _whole(expression: str) -> str:
    return rf"\A(?:{expression})\z"


def _names(expression: str, texts: list[str]) -> list[str | None] | None:
    """Return what the group has in each text, None where the text does not match; None without such a group.

    Raises:
        ValueError: it is no expression of RE2.
    """
    # settings are read by every command, and few of them have such an expression
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.extract_regex(pa.array(texts, pa.string()), expression)
    if len(found.type.get_all_field_indices(GROUP)) != 1:
        return None
    names: list[str | None] = pc.if_else(found.is_valid(), pc.struct_field(found, GROUP), None).to_pylist()
    return names


def _is_text(subject: str) -> bool:
    # half of a surrogate pair has no UTF-8, and no wrapper can carry it
    if subject.isascii():
        return True
    try:
        subject.encode()
    except UnicodeEncodeError:
        return False
    return True


class Policy(Enum):
    """Which games get a silver table."""

    AUTO = "auto"
    ALLOW_LIST = "allow-list"


def _cluster(name: str) -> str:
    if name == "bronze":
        raise ValueError("the cluster of this name is the bronze task's")
    return name


ClusterName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$"), AfterValidator(_cluster)]


def _longer_than_nothing(age: str) -> str:
    if not timedelta_of(age):
        raise ValueError("expected a second or more")
    return age


FreshWithin = Annotated[Age, AfterValidator(_longer_than_nothing)]


def _subjects(expression: str) -> str:
    if mistake := expression_mistake(expression):
        raise ValueError(mistake)
    return expression


class GamesSettings(Section):
    """Which games get a table, and which names are refused."""

    policy: Policy = Field(
        default=Policy.AUTO,
        description="auto: a game gets its table when its first record comes, up to `limit` games. "
        "allow-list: only the games under `allow` do; the records of all others wait in bronze.",
    )
    allow: tuple[Game, ...] = Field(default=(), description="Exact names of the games that always get a table.")
    limit: int = Field(
        default=1000, ge=0, description="Most games that may appear by themselves; the rest waits in bronze."
    )
    subjects: Annotated[str, AfterValidator(_subjects)] | None = Field(
        default=None,
        description="Regular expression (RE2) with a group `game`, such as (?P<game>.+)-value: games appear by their "
        "subject in the registry too, before their first record. Default: by their records alone.",
    )
    subjects_of: Mapping[Game, tuple[Text, ...]] = Field(
        default={},
        description="Subjects that hold a game's schemas beside those that bear its name, {game: [subject]}, such as "
        "{chess: [games.chess.Event]}. Without `subjects`, NAME and NAME-value bear the name.",
    )
    pinned: Mapping[Game, ClusterName] = Field(
        default={},
        description="Games whose task stays on a certain cluster, {game: cluster}, such as {chess: cluster_002} or a "
        "name of your own; all others go where there is room.",
    )
    schema_changes: SchemaChanges = Field(
        default=SchemaChanges.EVOLVE,
        description="What a schema does that would add a column to a game's table or make one wider. evolve: the table "
        "changes. freeze: it does not, see `frozen`. ask: the game waits for `demux schemas approve`. What does not "
        "fit at all goes to quarantine in every mode.",
    )
    schema_changes_of: Mapping[Game, SchemaChanges] = Field(
        default={}, description="Games with a mode of their own, {game: mode}, such as {chess: freeze}."
    )
    frozen: Frozen = Field(
        default=Frozen.QUARANTINE,
        description="What becomes of rows that have more than a frozen table has columns for. quarantine: they wait "
        "there as SCHEMA_FROZEN. rescue: they are decoded, and the rest is kept in `_rescued`.",
    )
    max_name_bytes: int = Field(
        default=MAX_NAME_BYTES,
        ge=1,
        le=MAX_NAME_BYTES,
        description="Longest game name in UTF-8 bytes; a record with a longer one goes to quarantine. At most "
        f"{MAX_NAME_BYTES}: escaping in a folder name can triple it, and a folder name may have 255 bytes.",
    )

    fresh_within: FreshWithin | None = Field(
        default=None,
        description="How long 95 of 100 rows may take from the timestamp of their record to the game's table, such as "
        "5s or 10m: `demux status` names the games that take longer, and an alert rule fires. Default: no limit.",
    )
    fresh_within_of: Mapping[Game, FreshWithin] = Field(
        default={}, description="Games with a time of their own, {game: time}, such as {chess: 5s}."
    )

    def fresh_within_s(self, game: str) -> float | None:
        """Return how many seconds 95 of 100 rows of the game may take to its table; None for no limit."""
        age = self.fresh_within_of.get(game, self.fresh_within)
        return None if age is None else timedelta_of(age).total_seconds()

    def contract_of(self, game: str) -> Contract:
        """Return the game's contract, by these settings alone."""
        return Contract(self.schema_changes_of.get(game, self.schema_changes), self.frozen, game=game)


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("expected one principal or more")
    return names


Principals = Annotated[tuple[Principal, ...], AfterValidator(_some)]


class GrantsSettings(Section):
    """Who may read which game's table in Unity Catalog; entries of a game add up."""

    games: Mapping[Game, Principals] = Field(
        default={},
        description="Who may read a game's table, {exact name: [principal]}: groups, e-mail addresses of users, "
        "application ids of service principals. `demux grants apply` gives them SELECT, and nothing on bronze.",
    )
    patterns: Mapping[Text, Principals] = Field(
        default={},
        description="The same for all games whose name suits a glob pattern, {pattern: [principal]}, such as "
        "{'puzzle_*': [puzzle-team]}. A part of its own, as a name may have such characters as well.",
    )
