"""The SQL that makes the tables of a root known to a catalog, and tags them. Pure.

Tags are Unity Catalog's: open-source Spark cannot even parse them, so those statements never ran in a test.
https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-syntax-ddl-alter-table (`SET TAGS`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from demux.core.names import quote_identifier, sql_string
from demux.core.protobuf.schema.option_tags import MAX_TAGS
from demux.core.storage.table_address import CatalogName

# a table's or a column's tags by key
TagsByKey = Mapping[str, str]

# the same bucket by Hadoop's names and by Amazon's own
_SCHEMES = {"s3a": "s3", "s3n": "s3"}


def look_into(catalog: str, schema: str) -> str:
    """Return the SQL that fails where Spark has no such catalog, or may not look into it."""
    return f"SHOW SCHEMAS IN {quote_identifier(catalog)} LIKE {sql_string(schema)}"


def create_schema(name: CatalogName) -> str:
    """Return the SQL that makes the schema of a table."""
    return f"CREATE SCHEMA IF NOT EXISTS {name.schema_sql}"


def create_table(name: CatalogName, path: str) -> str:
    """Return the SQL that makes a table known; its columns and comments are the files' own."""
    return f"CREATE TABLE IF NOT EXISTS {name.sql} USING DELTA LOCATION {sql_string(path)}"


def drop_table(name: CatalogName) -> str:
    """Return the SQL that lets the catalog forget the table; its files stay."""
    return f"DROP TABLE IF EXISTS {name.sql}"


def is_same_place(one: str, other: str) -> bool:
    """Return whether two paths or URIs are the same place; a catalog may show one in percent-encoding."""
    return bool(_spellings(one) & _spellings(other))


def held_tags(name: CatalogName) -> tuple[str, str]:
    """Return the SQL that reads a table's tags (`tag_name`, `tag_value`) and its columns' (`column_name` before)."""
    schema = f"{quote_identifier(name.catalog)}.information_schema"
    # unity catalog keeps names in lower case
    where = f"WHERE schema_name = {sql_string(name.schema.lower())} AND table_name = {sql_string(name.table)}"
    return (
        f"SELECT tag_name, tag_value FROM {schema}.table_tags {where}",
        f"SELECT column_name, tag_name, tag_value FROM {schema}.column_tags {where}",
    )


def set_tags(
    name: CatalogName,
    wanted: TagsByKey,
    columns: Mapping[str, TagsByKey],
    held: TagsByKey,
    held_columns: Mapping[str, TagsByKey],
) -> list[str]:
    """Return the SQL that sets what differs, one statement for each table or column; takes no tag away.

    Args:
        columns: its columns' tags, by name.
        held: its tags now.
        held_columns: its columns' tags now, by name.
    """
    alter = f"ALTER TABLE {name.sql}"
    changes = [(f"{alter} SET TAGS", _due(wanted, held))]
    for column, tags in columns.items():
        changes.append(
            (f"{alter} ALTER COLUMN {quote_identifier(column)} SET TAGS", _due(tags, held_columns.get(column, {})))
        )
    return [f"{head} ({_pairs(due.items())})" for head, due in changes if due]


def _due(wanted: TagsByKey, held: TagsByKey) -> TagsByKey:
    changed = {key: value for key, value in wanted.items() if held.get(key, value) != value}
    new = [(key, value) for key, value in wanted.items() if key not in held]
    return {**changed, **dict(new[: max(0, MAX_TAGS - len(held))])}


def _pairs(tags: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{sql_string(key)} = {sql_string(value)}" for key, value in sorted(tags))


def _spellings(place: str) -> set[str]:
    scheme, separator, rest = place.partition(":")
    if not separator or "/" in scheme:
        scheme, rest = "file", place
    scheme = _SCHEMES.get(scheme.lower(), scheme.lower())
    path = rest.rstrip("/")
    # file:/a, file:///a and /a are the same; s3://a and s3:/a are not
    path = "/" + path.lstrip("/") if scheme == "file" else path
    return {f"{scheme}:{spelling}" for spelling in (path, unquote(path))}
