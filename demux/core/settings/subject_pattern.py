"""Which games the subjects of a registry name: by the game's name, or by an expression with a group `game`. Pure.

RE2 does the matching (by Arrow): its time grows with the text alone, whatever the expression is, as both come from
outside. So there are no back references and no look-arounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

GROUP = "game"
MAX_EXPRESSION = 500


def expression_mistake(expression: str) -> str | None:
    """Return what is wrong with an expression for subjects, as a part of a sentence; None when it can be used."""
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
        subjects: as the registry has them.
    """
    return frozenset(_by_game(expression, frozenset(subjects)))


@dataclass(frozen=True, slots=True)
class SubjectRule:
    """Which subjects hold a game's schemas.

    Attributes:
        game: the exact name.
        expression: the setting `games.subjects`; None: the subjects NAME and NAME-value hold the game's schemas.
        named: the setting `games.subjects_of`: further subjects, by game.
    """

    game: str
    expression: str | None = None
    named: Mapping[str, Collection[str]] = field(default_factory=dict)

    def own(self, subjects: frozenset[str]) -> tuple[str, ...]:
        """Return those of the subjects that are the game's, in order of name."""
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
