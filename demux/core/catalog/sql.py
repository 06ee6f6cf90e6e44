"""How the tables of a root are called in a catalog, and the SQL that registers and tags them. Pure.

Tags are Unity Catalog's: open-source Spark cannot even parse them, so those statements never ran in a test.
https://docs.databricks.com/aws/en/sql/language-manual/sql-ref-syntax-ddl-alter-table (`SET TAGS`)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from demux.core.names import names_of, quoted, sql_string
from demux.core.protobuf.schema.option_tags import MAX_TAGS
from demux.core.root.layout import Layout
from demux.core.settings.tables import TableSettings

# a table's or a column's tags by key
TagsByKey = Mapping[str, str]

# the same bucket by Hadoop's names and by Amazon's own
_SCHEMES = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table in a catalog, and the path or URI where its files are."""

    catalog: str
    schema: str
    name: str
    location: str

    @property
    def full_name(self) -> str:
        """The name for people; its parts are letters, digits and `_`."""
        return f"{self.catalog}.{self.schema}.{self.name}"

    @property
    def schema_sql(self) -> str:
        """The name of its schema for SQL."""
        return ".".join(map(quoted, (self.catalog, self.schema)))

    @property
    def sql(self) -> str:
        """The name for SQL."""
        return ".".join(map(quoted, (self.catalog, self.schema, self.name)))


def look_into(table: CatalogTable) -> str:
    """Return the SQL that fails where Spark has no such catalog, or may not look into it."""
    return f"SHOW SCHEMAS IN {quoted(table.catalog)} LIKE {sql_string(table.schema)}"


def schemas_of(settings: TableSettings) -> tuple[str, ...]:
    """Return the schemas of the tables as SQL names them; none without a catalog."""
    if settings.catalog is None:
        return ()
    return tuple(
        f"{quoted(settings.catalog)}.{quoted(name)}"
        for name in dict.fromkeys(
            (settings.bronze, settings.silver, settings.quarantine_schema, settings.control_schema)
        )
    )


def silver_in(settings: TableSettings, layout: Layout, game: str) -> CatalogTable | None:
    """Return a game's table; None without a catalog."""
    if settings.catalog is None:
        return None
    key = names_of(game).key
    return CatalogTable(settings.catalog, settings.silver, key, layout.silver(key))


def bronze_in(settings: TableSettings, layout: Layout) -> tuple[CatalogTable, ...]:
    """Return bronze, quarantine and the control tables, those too that are not there yet; none without a catalog."""
    if settings.catalog is None:
        return ()
    bronze, quarantine, control = settings.bronze, settings.quarantine_schema, settings.control_schema
    places = {
        (bronze, "bronze"): layout.bronze,
        (quarantine, "quarantine"): layout.quarantine,
        (control, "control_schemas"): layout.schemas,
        (control, "control_games"): layout.games,
        (control, "control_deployments"): layout.deployments,
        (control, "control_rounds"): layout.rounds,
        (control, "control_topics"): layout.topics,
        (control, "control_gaps"): layout.gaps,
        (control, "control_dropped"): layout.dropped,
        (control, "control_removed"): layout.removed,
        (control, "control_backfills"): layout.backfills,
        (control, "control_approvals"): layout.approvals,
        (control, "control_forget"): layout.forget,
    }
    return tuple(CatalogTable(settings.catalog, *name, location) for name, location in places.items())


def table_at(settings: TableSettings, layout: Layout, location: str) -> CatalogTable | None:
    """Return what the root's table at this path is called; None where the root has none there, or without a catalog."""
    if settings.catalog is None:
        return None
    key = location.rpartition("/")[2]
    if location == layout.silver(key):
        return CatalogTable(settings.catalog, settings.silver, key, location)
    return next((table for table in bronze_in(settings, layout) if table.location == location), None)


def create_schema(schema: str) -> str:
    """Return the SQL that makes a schema of `schemas_of`."""
    return f"CREATE SCHEMA IF NOT EXISTS {schema}"


def create_table(table: CatalogTable) -> str:
    """Return the SQL that makes the table known; its columns and comments are the files' own."""
    return f"CREATE TABLE IF NOT EXISTS {table.sql} USING DELTA LOCATION {sql_string(table.location)}"


def drop_table(table: CatalogTable) -> str:
    """Return the SQL that lets the catalog forget the table; its files stay."""
    return f"DROP TABLE IF EXISTS {table.sql}"


def is_same_place(one: str, other: str) -> bool:
    """Return whether two paths or URIs are the same place; a catalog may show one in percent-encoding."""
    return bool(_spellings(one) & _spellings(other))


def held_tags(table: CatalogTable) -> tuple[str, str]:
    """Return the SQL that reads a table's tags (`tag_name`, `tag_value`) and its columns' (`column_name` before)."""
    schema = f"{quoted(table.catalog)}.information_schema"
    # unity catalog keeps names in lower case
    where = f"WHERE schema_name = {sql_string(table.schema.lower())} AND table_name = {sql_string(table.name)}"
    return (
        f"SELECT tag_name, tag_value FROM {schema}.table_tags {where}",
        f"SELECT column_name, tag_name, tag_value FROM {schema}.column_tags {where}",
    )


def set_tags(
    table: CatalogTable,
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
    alter = f"ALTER TABLE {table.sql}"
    changes = [(f"{alter} SET TAGS", _due(wanted, held))]
    for name, tags in columns.items():
        changes.append((f"{alter} ALTER COLUMN {quoted(name)} SET TAGS", _due(tags, held_columns.get(name, {}))))
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
