"""Small files of a table of this machine joined by `deltalake`; the fleet does so too, as it goes along."""

from __future__ import annotations

from collections.abc import Collection

from demux.core.extras import deltalake

_NOT_WITHOUT_SPARK = frozenset({"deletionVectors", "columnMapping", "rowTracking", "typeWidening"})


def suits(table: deltalake.DeltaTable) -> bool:
    """Return whether `deltalake` may rewrite the table's files: it knows neither deleted rows nor other names."""
    protocol = table.protocol()
    asked = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    return not mapped and not {feature.removesuffix("-preview") for feature in asked} & _NOT_WITHOUT_SPARK


def join(table: deltalake.DeltaTable, target: int, column: str | None = None, values: Collection[str] = ()) -> None:
    """Join files smaller than the target into files of about that size, in one commit that changes no row.

    Args:
        table: one that `suits`; not to be written by this process in the meantime.
        target: bytes.
        column: the partition column, where only some partitions are chosen.
        values: these partitions.
    """
    chosen = None if column is None else [(column, "in", sorted(values))]
    table.optimize.compact(partition_filters=chosen, target_size=target)
