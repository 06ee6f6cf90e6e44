"""The section `tables` of the settings: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from demux.core.errors import SettingsInvalid
from demux.core.settings.loading.loader import load
from demux.core.settings.settings import Settings

DEPLOYED = {"databricks.name": "prod", "databricks.wheel_path": "/Volumes/main/ops/wheels", "root": "s3://lake/demux"}


def loaded(given: dict[str, Any]) -> Settings:
    return load(None, {}, given)


def mistakes(given: dict[str, Any]) -> list[str]:
    """What is said of the settings, without the place."""
    with pytest.raises(SettingsInvalid) as caught:
        loaded(given)
    return [line.partition(": ")[2] for line in caught.value.message.splitlines()]


def test_without_a_catalog_no_table_has_a_name() -> None:
    assert Settings().tables.catalog is None


def test_quarantine_and_control_tables_are_beside_bronze_unless_they_have_schemas_of_their_own() -> None:
    tables = loaded({"tables.catalog": "main", "tables.bronze": "raw"}).tables
    assert (tables.quarantine_schema, tables.control_schema) == ("raw", "raw")
    apart = loaded({"tables.catalog": "main", "tables.quarantine": "bad", "tables.control": "ops"}).tables
    assert (apart.bronze, apart.quarantine_schema, apart.control_schema) == ("bronze", "bad", "ops")


@pytest.mark.parametrize(
    ("given", "others"),
    [
        ({"tables.silver": "Bronze"}, "bronze"),
        ({"tables.quarantine": "silver"}, "quarantine"),
        ({"tables.silver": "x", "tables.bronze": "X", "tables.control": "x"}, "bronze and control"),
    ],
)
def test_games_tables_have_a_schema_of_their_own_in_a_catalog(given: dict[str, str], others: str) -> None:
    # a game may be called bronze
    assert mistakes({"tables.catalog": "main", **given}) == [f"tables: silver must be another schema than {others}"]
    assert loaded(given).tables.catalog is None


@pytest.mark.parametrize("name", ["a.b", "a b", "`x`", "", "a-b", "x" * 256, "${x}"])
@pytest.mark.parametrize("key", ["catalog", "bronze", "silver", "quarantine", "control"])
def test_a_name_that_needs_quotes_is_refused(key: str, name: str) -> None:
    assert mistakes({f"tables.{key}": name})[0].startswith(f"tables.{key}: ")


@pytest.mark.parametrize("catalog", ["spark_catalog", "Hive_Metastore"])
def test_a_deployment_has_a_catalog_of_unity_catalog(catalog: str) -> None:
    assert mistakes({**DEPLOYED, "tables.catalog": catalog}) == [
        f"tables.catalog: {catalog} is not of Unity Catalog; name another one, or set tables.catalog: null"
    ]
    assert loaded({"tables.catalog": catalog}).tables.catalog == catalog


@pytest.mark.parametrize("compute", ["serverless", "standard", "dedicated"])
def test_a_deployment_with_a_catalog_has_no_root_in_a_volume(compute: str) -> None:
    nodes = {} if compute == "serverless" else {"databricks.cluster.node_type": "i3.xlarge"}
    volume = {**DEPLOYED, **nodes, "databricks.compute": compute, "root": "/Volumes/main/demux/data"}
    assert mistakes({**volume, "tables.catalog": "main"}) == [
        "root is in a volume, where Unity Catalog has no tables; name a URI below one of its external locations, or "
        "set tables.catalog: null"
    ]
    assert loaded(volume).tables.catalog is None
