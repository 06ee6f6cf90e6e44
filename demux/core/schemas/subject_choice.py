"""Which subject a schema id means for a game: registries give equal texts one id. Pure.

The rule, and why it is as it is: docs/decisions/0032-what-a-schema-id-means.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from demux.core.errors import SchemaInvalid, SubjectAmbiguous
from demux.core.protobuf.schema.message_selection import with_message
from demux.core.protobuf.schema.protoc import CompiledSchema, first_message
from demux.core.registry.protocol import RegisteredSchema, SubjectVersion, no_subject
from demux.core.settings.games import SubjectRule

# subjects that a sentence names
_MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class GameSchemas:
    """Where the schemas of a game are, and which of them are the game's, by the settings.

    Attributes:
        messages: which message payloads of a subject hold, where the rows do not say.
    """

    registry: str
    rule: SubjectRule
    messages: Mapping[str, str] = field(default_factory=dict)

    def version_of(self, uses: Sequence[SubjectVersion]) -> int:
        """Return the version to show for an id: of the game's own subject where that has the id, else of the first."""
        own = self.rule.own(frozenset(use.subject for use in uses))
        return next((use.version for use in uses if use.subject in own), uses[0].version)


@dataclass(frozen=True, slots=True)
class SharedSchema:
    """The text under an id, compiled, and every version of a subject that has the id.

    Attributes:
        descriptor_set: a serialized `FileDescriptorSet`, the file itself last.
        uses: in order of subject and version; none where the registry names no subject.
    """

    schema_id: int
    descriptor_set: bytes
    uses: tuple[SubjectVersion, ...]

    def used_as(self, use: SubjectVersion) -> CompiledSchema:
        """Return the schema as a version of a subject, with the message of that, else with the first of the file.

        Raises:
            SchemaInvalid: no message is named, and the file has none of its own.
        """
        wanted = use.message or first_message(self.descriptor_set)
        if wanted is None:
            raise SchemaInvalid(
                f"Schema {self.schema_id} ({use.subject!r} version {use.version}) has no message of its own.",
                "Name the message in the registry's `messages`; then replay the quarantine.",
                schema_id=self.schema_id,
                subject=use.subject,
            )
        return CompiledSchema(self.schema_id, use.subject, use.version, wanted, self.descriptor_set)


def shared_by(schema: RegisteredSchema, descriptor_set: bytes) -> SharedSchema:
    """Return a schema that was asked for by id, compiled, with the message that each of its subjects means."""
    first = first_message(descriptor_set)
    uses = {replace(use, message=use.message or first) for use in schema.uses}
    return SharedSchema(schema.schema_id, descriptor_set, tuple(sorted(uses, key=_place)))


def _place(use: SubjectVersion) -> tuple[str, int]:
    return (use.subject, use.version)


def uses_by_id(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], tuple[SubjectVersion, ...]]:
    """Return the versions of subjects that have each id, in order, by registry and id; none where no subject has it.

    Args:
        rows: of the table of schemas, with its columns `registry`, `schema_id`, `subject`, `version` and `message`.
    """
    uses: defaultdict[tuple[str, int], set[SubjectVersion]] = defaultdict(set)
    for row in rows:
        mine = uses[row["registry"], row["schema_id"]]
        if row["subject"] != no_subject(row["schema_id"]):
            mine.add(SubjectVersion(row["subject"], row["version"], row["message"]))
    return {key: tuple(sorted(mine, key=_place)) for key, mine in uses.items()}


def shared_schemas(rows: Collection[Mapping[str, Any]]) -> dict[tuple[str, int], SharedSchema]:
    """Return the schemas of rows of the table of schemas, all of its columns, by registry and id."""
    sets = {(row["registry"], row["schema_id"]): bytes(row["descriptor_set"]) for row in rows}
    return {key: SharedSchema(key[1], sets[key], uses) for key, uses in uses_by_id(rows).items()}


@dataclass(frozen=True, slots=True)
class ForeignSchema:
    """A schema of subjects that are not the game's; its rows are not decoded."""

    schema_id: int
    message: str


def choose(
    shared: SharedSchema, indexes: str | None, game: GameSchemas, subjects: frozenset[str]
) -> CompiledSchema | ForeignSchema:
    """Return the schema that a game's record means.

    The game's own subjects come first. A game that has subjects of its own, under other ids, takes no other subject's
    schema; nor does any game take a schema of a subject that the settings give to another game. Of the subjects that
    are left, those count that `messages` names, else all. They may be several where they mean the same message: then
    the schema is that of the first subject in order of name, and its oldest version.

    Args:
        indexes: the record's message indexes, such as `1,0`; None where it does not say.
        subjects: every subject of the registry, as far as they are known.

    Raises:
        SubjectAmbiguous: the subjects that are left mean different messages.
        SchemaInvalid: as `with_message`.
    """
    uses = _candidates(shared, game, subjects)
    if isinstance(uses, ForeignSchema):
        return uses
    found: dict[str, CompiledSchema] = {}
    for use in uses:
        named = named_message(use, game.messages)
        schema = with_message(shared.used_as(named), indexes, named.message)
        found.setdefault(schema.message, schema)
    if len(found) > 1:
        raise _ambiguous(shared, game.rule, found.values())
    return next(iter(found.values()))


def named_message(use: SubjectVersion, messages: Mapping[str, str]) -> SubjectVersion:
    """Return the version of the subject with the message that the settings name for it, else as the registry has it."""
    return replace(use, message=messages.get(use.subject, use.message))


def _candidates(
    shared: SharedSchema, game: GameSchemas, subjects: frozenset[str]
) -> tuple[SubjectVersion, ...] | ForeignSchema:
    rule = game.rule
    if not shared.uses:
        return (SubjectVersion(no_subject(shared.schema_id), 1),)
    mine = frozenset(rule.own(frozenset(use.subject for use in shared.uses)))
    if mine:
        return tuple(use for use in shared.uses if use.subject in mine)
    names = sorted({use.subject for use in shared.uses})
    if own := rule.own(subjects):
        return ForeignSchema(
            shared.schema_id, f"Schema {shared.schema_id} is of {_listed(names)}, and the game has {_listed(own)}."
        )
    free = tuple(use for use in shared.uses if rule.of_another(use.subject) is None)
    if not free:
        whose = rule.of_another(names[0])
        return ForeignSchema(shared.schema_id, f"Schema {shared.schema_id} is of {_listed(names)}, the game {whose}'s.")
    return tuple(use for use in free if use.subject in game.messages) or free


def _ambiguous(shared: SharedSchema, rule: SubjectRule, schemas: Iterable[CompiledSchema]) -> SubjectAmbiguous:
    meanings = ", ".join(f"{schema.subject!r} ({schema.message})" for schema in schemas)
    return SubjectAmbiguous(
        f"Schema {shared.schema_id} is of several subjects that mean different messages, {meanings}, and nothing says "
        "which of them the game's records hold.",
        "Name the game's subject in games.subjects_of, or the message of one of them in the registry's `messages`; the "
        "game's rows wait in bronze.",
        game=rule.game,
        schema_id=shared.schema_id,
        subjects=tuple(schema.subject for schema in schemas),
    )


def _listed(subjects: Collection[str]) -> str:
    more = f" and {len(subjects) - _MAX_NAMES:,} more" if len(subjects) > _MAX_NAMES else ""
    what = "subject" if len(subjects) == 1 else "subjects"
    return f"the {what} {', '.join(map(repr, list(subjects)[:_MAX_NAMES]))}{more}"
