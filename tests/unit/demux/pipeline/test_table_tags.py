"""The tags that a game's table and its columns get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from demux.core.columns.types import Column, Primitive, Struct
from demux.core.protobuf.schema.option_tags import Tags
from demux.core.storage.table_address import CatalogName
from demux.pipeline.table_tags import tag

CHESS = CatalogName("main", "Games", "chess")


class Tagged:
    """Answers to the statements that read tags, and writes down all others."""

    def __init__(self, *answers: Sequence[Mapping[str, str]]) -> None:
        self._answers = [[SimpleNamespace(**row) for row in answer] for answer in answers]
        self.ran: list[str] = []

    def __call__(self, statement: str) -> Sequence[Any]:
        if statement.startswith("SELECT"):
            return self._answers.pop(0)
        self.ran.append(statement)
        return []


COLUMNS = Struct((Column("player__2", Primitive.STRING, 2), Column("_schema_id", Primitive.INT)))


def test_a_fields_tags_go_to_the_column_that_it_fills() -> None:
    catalog = Tagged(
        [{"tag_name": "team", "tag_value": "a"}],
        [{"column_name": "player__2", "tag_name": "pii", "tag_value": "false"}],
    )
    # a field that has no column in this table yet has no tags there either
    tag(catalog, CHESS, COLUMNS, Tags({"team": "a"}, {2: {"pii": "true"}, 3: {"pii": "true"}}, ()))
    assert catalog.ran == ["ALTER TABLE `main`.`Games`.`chess` ALTER COLUMN `player__2` SET TAGS ('pii' = 'true')"]


def test_without_tags_the_catalog_is_not_asked() -> None:
    catalog = Tagged()
    tag(catalog, CHESS, COLUMNS, Tags({}, {}, ()))
    assert catalog.ran == []
