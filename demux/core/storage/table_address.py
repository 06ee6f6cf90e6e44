"""Where a table is, and what a catalog calls it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from demux.core.names import quote_identifier


@dataclass(frozen=True, slots=True)
class CatalogName:
    """The name of a table in a catalog."""

    catalog: str
    schema: str
    table: str

    @property
    def full_name(self) -> str:
        """The name for people; its parts are letters, digits and `_`."""
        return f"{self.catalog}.{self.schema}.{self.table}"

    @property
    def schema_sql(self) -> str:
        """The name of its schema for SQL."""
        return ".".join(map(quote_identifier, (self.catalog, self.schema)))

    @property
    def sql(self) -> str:
        """The name for SQL."""
        return ".".join(map(quote_identifier, (self.catalog, self.schema, self.table)))


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table as files and as Spark find it.

    Attributes:
        path: the path or URI where its files are.
        name: what the catalog calls it; None without a catalog, and for a table that is not the root's.
    """

    path: str
    name: CatalogName | None = None


@dataclass(frozen=True, slots=True)
class CatalogNames:
    """What the tables below a root are called in a catalog.

    Attributes:
        root: the path or URI below which they are.
        catalog: the catalog.
        bronze: schema of the table bronze.
        silver: schema of the games' tables.
        quarantine: schema of the table quarantine.
        control: schema of the control tables.
    """

    root: str
    catalog: str
    bronze: str
    silver: str
    quarantine: str
    control: str

    def name_of(self, path: str) -> CatalogName | None:
        """Return the name of the table at this path or URI; None for what is no table of the root."""
        inside = path.removeprefix(f"{self.root}/") if path.startswith(f"{self.root}/") else ""
        match inside.split("/"):
            case ["bronze"]:
                return CatalogName(self.catalog, self.bronze, "bronze")
            case ["quarantine"]:
                return CatalogName(self.catalog, self.quarantine, "quarantine")
            case ["silver", key] if key:
                return CatalogName(self.catalog, self.silver, key)
            case ["control", table] if table:
                return CatalogName(self.catalog, self.control, f"control_{table}")
            case _:
                return None
