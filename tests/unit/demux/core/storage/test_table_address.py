"""Where tables are, and what a catalog calls them."""

from __future__ import annotations

import pytest

from demux.core.names import names_of
from demux.core.root.layout import Layout, names_of_tables
from demux.core.settings.loading.loader import load
from demux.core.storage.files import Storage
from demux.core.storage.table_address import CatalogName, CatalogNames, TableAddress

ROOT = "s3://bucket/it's a root"
NAMES = CatalogNames(ROOT, "main", bronze="raw", silver="Games", quarantine="bad", control="ops")
LAYOUT = Layout(ROOT, Storage(catalog=NAMES))


def name_at(path: str) -> str | None:
    name = LAYOUT.storage.address(path).name
    return None if name is None else name.full_name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (LAYOUT.bronze, "main.raw.bronze"),
        (LAYOUT.quarantine, "main.bad.quarantine"),
        (LAYOUT.silver("chess"), "main.Games.chess"),
        # a game may be called as another table is
        (LAYOUT.silver("bronze"), "main.Games.bronze"),
        (LAYOUT.games, "main.ops.control_games"),
        (LAYOUT.forget, "main.ops.control_forget"),
    ],
)
def test_each_table_of_a_root_has_a_name(path: str, name: str) -> None:
    assert name_at(path) == name
    assert LAYOUT.storage.address(path).path == path


@pytest.mark.parametrize(
    "path",
    [ROOT, f"{ROOT}/source", f"{ROOT}/silver", f"{ROOT}/silver/", f"{ROOT}/silver/a/b", f"{ROOT}2/bronze", "/bronze"],
)
def test_what_is_no_table_of_the_root_has_no_name(path: str) -> None:
    assert name_at(path) is None


def test_a_hostile_games_table_is_called_by_its_key() -> None:
    key = names_of("a'b; drop table x").key
    assert name_at(LAYOUT.silver(key)) == "main.Games.a_b_drop_table_x__9bca94d10f29567d"


def test_without_a_catalog_a_table_has_its_path_alone() -> None:
    plain = Layout(ROOT)
    assert plain.storage.address(plain.bronze) == TableAddress(plain.bronze)


def test_every_part_of_a_name_is_quoted_for_sql() -> None:
    name = CatalogName("main", "x`y", "select")
    assert (name.sql, name.schema_sql) == ("`main`.`x``y`.`select`", "`main`.`x``y`")


def test_the_names_are_those_of_the_settings() -> None:
    assert names_of_tables(load(None, {}, {"root": ROOT})) is None
    settings = load(None, {}, {"root": ROOT, "tables.catalog": "main", "tables.bronze": "raw"})
    assert names_of_tables(settings) == CatalogNames(
        ROOT, "main", bronze="raw", silver="silver", quarantine="raw", control="raw"
    )
