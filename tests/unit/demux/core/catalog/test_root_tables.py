"""Which tables a root has once, whatever the games."""

from __future__ import annotations

from demux.core.catalog.root_tables import root_tables
from demux.core.root.layout import Layout
from demux.core.tables import BRONZE

# files and folders below a root that are no tables
NO_TABLES = {"maintenance", "removal", "no_archive", "bronze_checkpoint", "logs"}


def test_every_table_of_a_root_is_among_them() -> None:
    layout = Layout("/data")
    places = {name: getattr(layout, name) for name, value in vars(Layout).items() if isinstance(value, property)}
    found = root_tables(layout, BRONZE)
    assert sorted(table.path for table in found) == sorted(
        path for name, path in places.items() if name not in NO_TABLES
    )
    assert [table.path for table in found if table.partition_by] == [layout.bronze]
