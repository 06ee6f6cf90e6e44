"""What the tables are called in a catalog, and the SQL that registers and tags them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from demux.core.catalog.registration import tag
from demux.core.catalog.sql import (
    CatalogTable,
    bronze_in,
    create_schema,
    create_table,
    drop_table,
    held_tags,
    is_same_place,
    schemas_of,
    set_tags,
    silver_in,
    table_at,
)
from demux.core.columns.types import Column, Primitive, Struct
from demux.core.protobuf.schema.option_tags import MAX_TAGS, Tags
from demux.core.root.layout import Layout
from demux.core.settings.tables import TableSettings
from tests.conftest import Golden

LAYOUT = Layout("s3://bucket/it's a root")
SETTINGS = TableSettings(catalog="main", silver="Games")
CHESS = CatalogTable("main", "Games", "chess", "s3://bucket/it's a root/silver/chess")


def test_a_path_leads_back_to_the_tables_name() -> None:
    assert table_at(SETTINGS, LAYOUT, LAYOUT.silver("chess")) == CHESS
    bronze = table_at(SETTINGS, LAYOUT, LAYOUT.bronze)
    assert bronze is not None
    assert (bronze.full_name, drop_table(bronze)) == (
        "main.bronze.bronze",
        "DROP TABLE IF EXISTS `main`.`bronze`.`bronze`",
    )
    assert table_at(SETTINGS, LAYOUT, f"{LAYOUT.root}/source") is None
    assert table_at(TableSettings(), LAYOUT, LAYOUT.bronze) is None


def test_a_games_table_is_called_by_its_key() -> None:
    assert silver_in(SETTINGS, LAYOUT, "chess") == CHESS
    hostile = silver_in(SETTINGS, LAYOUT, "a'b; drop table x")
    assert hostile is not None
    assert (hostile.full_name, hostile.location) == (
        "main.Games.a_b_drop_table_x__9bca94d10f29567d",
        "s3://bucket/it's a root/silver/a_b_drop_table_x__9bca94d10f29567d",
    )


def test_without_a_catalog_there_is_nothing_to_register() -> None:
    nowhere = TableSettings()
    assert (silver_in(nowhere, LAYOUT, "chess"), bronze_in(nowhere, LAYOUT), schemas_of(nowhere)) == (None, (), ())


def test_bronze_quarantine_and_the_control_tables_have_a_schema_of_their_own() -> None:
    found = bronze_in(SETTINGS, LAYOUT)
    assert [table.full_name for table in found] == [
        "main.bronze.bronze",
        "main.bronze.quarantine",
        "main.bronze.control_schemas",
        "main.bronze.control_games",
        "main.bronze.control_deployments",
        "main.bronze.control_rounds",
        "main.bronze.control_topics",
        "main.bronze.control_gaps",
        "main.bronze.control_dropped",
        "main.bronze.control_removed",
        "main.bronze.control_backfills",
        "main.bronze.control_approvals",
        "main.bronze.control_forget",
    ]
    assert found[2].location == LAYOUT.schemas


def test_schemas_and_tables_are_made_only_where_there_are_none() -> None:
    assert [create_schema(schema) for schema in schemas_of(SETTINGS)] == [
        "CREATE SCHEMA IF NOT EXISTS `main`.`bronze`",
        "CREATE SCHEMA IF NOT EXISTS `main`.`Games`",
    ]
    assert create_table(CHESS) == (
        "CREATE TABLE IF NOT EXISTS `main`.`Games`.`chess` USING DELTA "
        "LOCATION 's3://bucket/it\\'s a root/silver/chess'"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/data/x", "file:/data/x"),
        ("/data/x/", "file:///data/x"),
        ("/data/a b", "file:/data/a%20b"),
        ("s3a://bucket/x", "s3://bucket/x/"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("/data/a:b", "file:/data/a:b"),
    ],
)
def test_one_place_may_be_written_in_several_ways(one: str, other: str) -> None:
    assert is_same_place(one, other)
    assert is_same_place(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/data/x", "/data/X"),
        ("/data/x", "/data/x/y"),
        ("s3://bucket/x", "s3://other/x"),
        ("s3://bucket/x", "gs://bucket/x"),
        ("/bucket/x", "s3://bucket/x"),
    ],
)
def test_two_places_are_not_taken_for_one(one: str, other: str) -> None:
    assert not is_same_place(one, other)


def test_tags_are_set_where_they_differ_and_never_taken_away(golden: Golden) -> None:
    wanted = {"owner": "team a's", "deprecated": "true", "kept": "1"}
    columns = {"user`name": {"pii": "true", "level": "${HIGH}"}, "same": {"pii": "true"}, "new": {"a": "b\\c"}}
    held = {"kept": "1", "deprecated": "false", "theirs": "x"}
    held_columns = {"user`name": {"pii": "false"}, "same": {"pii": "true"}, "other": {"x": "y"}}
    statements = set_tags(CHESS, wanted, columns, held, held_columns)
    golden("catalog/tags.sql", ";\n".join((*held_tags(CHESS), *statements)))
    assert set_tags(CHESS, wanted, columns, {**held, **wanted}, columns) == []


def test_tags_of_others_count_for_the_limit() -> None:
    held = {f"theirs{n}": "x" for n in range(MAX_TAGS - 1)} | {"mine": "old"}
    assert set_tags(CHESS, {"mine": "new", "more": "x"}, {}, held, {}) == [
        "ALTER TABLE `main`.`Games`.`chess` SET TAGS ('mine' = 'new')"
    ]


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
