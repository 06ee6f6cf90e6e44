"""Delta tables that a process opens once, and whose logs it reads on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from demux.core.columns.types import Struct
from demux.core.extras import deltalake
from demux.core.storage.files import Storage

if TYPE_CHECKING:
    from deltalake import DeltaTable


class OpenTables:
    """Tables that are opened once; later calls read only what is new in their logs.

    Attributes:
        opened: those that are open, by path.
    """

    def __init__(self, storage: Storage) -> None:
        """Prepare; opens nothing yet."""
        self.storage = storage
        self.opened: dict[str, DeltaTable] = {}

    def get(self, path: str) -> DeltaTable | None:
        """Return the table at a path as it is now; None where there is none."""
        if path in self.opened:
            self.opened[path] = self.storage.catch_up(self.opened[path], path)
        else:
            try:
                self.opened[path] = self.storage.table(path)
            except deltalake.exceptions.TableNotFoundError:
                return None
            except deltalake.exceptions.DeltaError:
                # so it is too where a file is in the folder's place, which its first write says better
                if self.storage.table_exists(path):
                    raise
        return self.opened.get(path)

    def create(self, path: str, columns: Struct, partition_by: str | None = None) -> DeltaTable:
        """Return the table at a path as it is now, made with these columns where there is none."""
        found = self.get(path)
        if found is None:
            from demux.core.columns.spark import spark_struct

            schema = spark_struct(columns).jsonValue()
            found = self.opened[path] = self.storage.create_table(path, schema, partition_by=partition_by)
        return found
