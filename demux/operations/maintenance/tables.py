"""The tables below a root that are maintained."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from demux.core.names import names_of
from demux.core.root.layout import Layout
from demux.core.settings.maintenance import MaintainSettings
from demux.operations.maintenance.report import Table, TableKind


def tables_of(
    layout: Layout, settings: MaintainSettings, names: Mapping[str, str], games: Collection[str]
) -> tuple[Table, ...]:
    """Return the tables that are there: bronze first, then quarantine, control and silver by name.

    Args:
        settings: by which columns silver tables are ordered.
        names: the games' exact names by key, as far as they are known.
        games: exact names; only their silver tables are meant then. None of them: all tables.
    """
    if games:
        keys = sorted(names_of(game).key for game in games)
        found = _silver(layout, settings, {**names, **{names_of(game).key: game for game in games}}, keys)
    else:
        keys = layout.storage.names(f"{layout.root}/silver")
        found = _all(layout, settings, names, keys)
    return tuple(table for table in found if layout.storage.table_exists(table.path))


def _all(
    layout: Layout, settings: MaintainSettings, names: Mapping[str, str], keys: Collection[str]
) -> Iterator[Table]:
    yield Table(TableKind.BRONZE, layout.bronze, "bronze")
    yield Table(TableKind.QUARANTINE, layout.quarantine, "quarantine")
    for name in layout.storage.names(f"{layout.root}/control"):
        yield Table(TableKind.CONTROL, f"{layout.root}/control/{name}", f"control/{name}")
    yield from _silver(layout, settings, names, keys)


def _silver(
    layout: Layout, settings: MaintainSettings, names: Mapping[str, str], keys: Collection[str]
) -> Iterator[Table]:
    for key in keys:
        yield Table(TableKind.SILVER, layout.silver(key), f"silver/{key}", settings.order_of(names.get(key)))
