"""The settings of the tables: what they are called in a catalog."""

from __future__ import annotations

from pydantic import Field, model_validator

from demux.core.settings.databricks.values import Identifier
from demux.core.settings.types import Section, rule

# Spark's own catalog, and what Databricks calls it; with neither is anything granted, tagged or traced
_NOT_OF_UNITY = frozenset({"spark_catalog", "hive_metastore"})
_VOLUMES = "/Volumes/"


class TableSettings(Section):
    """What the tables are called in a catalog: `<catalog>.<schema>.<table>`."""

    catalog: Identifier | None = Field(
        default=None,
        description="Catalog of the tables: one of Unity Catalog's, or spark_catalog for Spark's own. Each table "
        "is made there by its name before its first row. Default: none, tables are known by path.",
    )
    bronze: Identifier = Field(default="bronze", description="Schema of the table bronze.")
    silver: Identifier = Field(
        default="silver", description="Schema of the games' tables, which has no other tables of ours."
    )
    quarantine: Identifier | None = Field(
        default=None, description="Schema of the table quarantine. Default: that of bronze."
    )
    control: Identifier | None = Field(
        default=None, description="Schema of the control tables, control_<table>. Default: that of bronze."
    )

    @model_validator(mode="after")
    def _consistent(self) -> TableSettings:
        others = {"bronze": self.bronze, "quarantine": self.quarantine, "control": self.control}
        same = [name for name, schema in others.items() if schema and schema.lower() == self.silver.lower()]
        if self.catalog is not None and same:
            # a game may be called bronze, and grants on games' tables must not reach bronze
            raise rule(f"silver must be another schema than {' and '.join(same)}")
        return self

    @property
    def quarantine_schema(self) -> str:
        """The schema of the table quarantine."""
        return self.quarantine or self.bronze

    @property
    def control_schema(self) -> str:
        """The schema of the control tables."""
        return self.control or self.bronze


def refused_in_workspace(tables: TableSettings, root: str) -> list[str]:
    """Return what Unity Catalog would refuse, whatever the tasks run on; a sentence each."""
    if tables.catalog is None:
        return []
    wrong = []
    if tables.catalog.lower() in _NOT_OF_UNITY:
        wrong.append(
            f"tables.catalog: {tables.catalog} is not of Unity Catalog; name another one, or set tables.catalog: null"
        )
    if root.startswith(_VOLUMES):
        # https://docs.databricks.com/aws/en/data-governance/unity-catalog/paths
        wrong.append(
            "root is in a volume, where Unity Catalog has no tables; name a URI below one of its external locations, "
            "or set tables.catalog: null"
        )
    return wrong
