"""The SQL that makes tables known to a catalog, and tags them."""

from __future__ import annotations

import pytest

from demux.core.catalog.sql import (
    create_schema,
    create_table,
    drop_table,
    held_tags,
    is_same_place,
    look_into,
    set_tags,
)
from demux.core.protobuf.schema.option_tags import MAX_TAGS
from demux.core.storage.table_address import CatalogName
from tests.conftest import Golden

CHESS = CatalogName("main", "Games", "chess")


def test_schemas_and_tables_are_made_only_where_there_are_none() -> None:
    assert create_schema(CHESS) == "CREATE SCHEMA IF NOT EXISTS `main`.`Games`"
    assert create_table(CHESS, "s3://bucket/it's a root/silver/chess") == (
        "CREATE TABLE IF NOT EXISTS `main`.`Games`.`chess` USING DELTA "
        "LOCATION 's3://bucket/it\\'s a root/silver/chess'"
    )
    assert drop_table(CHESS) == "DROP TABLE IF EXISTS `main`.`Games`.`chess`"
    assert look_into("main", "Games") == "SHOW SCHEMAS IN `main` LIKE 'Games'"


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
