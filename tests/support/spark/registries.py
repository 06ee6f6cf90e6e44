"""Registries for a schema store: one in memory that counts and knows GUIDs, and which of several a game has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from demux.core.errors import SchemaUnknown
from demux.core.registry.protocol import RegisteredSchema, SchemaRegistry
from demux.core.schemas.ref import SchemaRef
from demux.core.schemas.store import GameRegistry
from demux.core.schemas.subject_choice import GameSchemas
from demux.core.settings.games import SubjectRule
from tools.memory_registry import MemoryRegistry


class CountingRegistry(MemoryRegistry):
    """Remembers what it was asked for; `guids` are its ids by GUID."""

    def __init__(self, guids: Mapping[str, int] | None = None) -> None:
        super().__init__()
        self.asked: list[int | str] = []
        self.guids = dict(guids or {})

    def schema(self, schema_id: int) -> RegisteredSchema:
        self.asked.append(schema_id)
        return super().schema(schema_id)

    def schema_of_guid(self, guid: str) -> RegisteredSchema:
        self.asked.append(guid)
        if guid not in self.guids and self.reachable:
            raise SchemaUnknown(f"The registry has no schema {guid}.", "Register it.", guid=guid)
        return super().schema(self.guids.get(guid, 0))


def every_game(registry: SchemaRegistry, messages: Mapping[str, str] | None = None) -> Callable[[str], GameRegistry]:
    """Return the choice that gives every game this registry, called `default`."""
    return lambda game: GameRegistry(GameSchemas("default", SubjectRule(game), messages or {}), lambda: registry)


def ids(*schema_ids: int | None) -> set[SchemaRef]:
    """Return the refs of rows that name their schemas by id alone."""
    return {SchemaRef(schema_id) for schema_id in schema_ids}
