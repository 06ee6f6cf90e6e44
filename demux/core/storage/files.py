"""Every file, by path or URI, wherever it is: the one way to files. Spark is not asked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from demux.core.error_mapping import damage_error, is_damage
from demux.core.errors import StorageFailed
from demux.core.extras import deltalake, obstore, on_databricks
from demux.core.storage.access import StoreAccess
from demux.core.storage.backend import Backend, FolderState, NewFile, StoredFile, Tagged
from demux.core.storage.bucket import Bucket
from demux.core.storage.folder import LocalFolder
from demux.core.storage.location import WORKSPACE, Location, Scheme, locate
from demux.core.storage.refusals import refusal
from demux.core.storage.table_address import CatalogNames, TableAddress

if TYPE_CHECKING:
    import pyarrow as pa

_OF_A_VERSION = re.compile(r"\d{20}\.")
# deltalake (1.6.6) decodes the path of a table in a store once too often
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_SIDE_BY_SIDE = 32


@dataclass(frozen=True, slots=True)
class Storage:
    """How this process reaches files; a value that Spark's tasks get too.

    Every method takes a path of this machine or a URI. A missing file is a `FileNotFoundError`. A folder of this
    machine that fails raises an `OSError`, a store a `DemuxError`.

    Attributes:
        mounts: folders of this machine that have other file systems, by the prefix that Spark has for them.
        catalog: what the root's tables are called in a catalog; None without one.
    """

    access: StoreAccess = field(default_factory=StoreAccess)
    mounts: Mapping[str, str] = field(default_factory=dict)
    catalog: CatalogNames | None = None

    @staticmethod
    def here(access: StoreAccess, mounts: Mapping[str, str], catalog: CatalogNames | None = None) -> Storage:
        """Return how this process reaches files; a cluster of Databricks has the file systems of its workspace."""
        return Storage(access, {**(WORKSPACE if on_databricks() else {}), **mounts}, catalog)

    def address(self, path: str) -> TableAddress:
        """Return where files and Spark find the table at the path."""
        return TableAddress(path, None if self.catalog is None else self.catalog.name_of(path))

    def reaches(self, path: str) -> bool:
        """Return whether Delta tables at the path are read and written without Spark, given their client.

        A mount is left to Spark: a commit needs a file that is made once, which few of them can do.
        """
        if not self.is_store(path):
            return self.is_folder(path)
        return not _ESCAPE.search(self._where(path).key) and _has_tables()

    def reaches_tables(self, path: str) -> bool:
        """Return the same, and whether the client is installed."""
        return _has_tables() and self.reaches(path)

    def require_reached(self, path: str) -> Location:
        """Return where the path is, by a client or a mount.

        Raises:
            StorageFailed: none has it.
        """
        where = self._where(path)
        if where.scheme is Scheme.OTHER:
            raise StorageFailed(
                f"No client reaches {path}.",
                "Name a folder, s3://, abfss:// or gs://; or mount its file system on every machine, and set "
                "`store.mounts`.",
                path=path,
            )
        return where

    def is_store(self, path: str) -> bool:
        """Return whether the path is one of an object store."""
        return self._where(path).scheme in {Scheme.S3, Scheme.AZURE, Scheme.GCS}

    def is_folder(self, path: str) -> bool:
        """Return whether the path is one of this machine."""
        return self._where(path).scheme is Scheme.FILE

    def side_by_side(self, path: str) -> int:
        """Return how many requests below the path to make at the same time: those to a store wait for its answers."""
        return 1 if self.is_folder(path) else _SIDE_BY_SIDE

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        backend, key = self._at(path)
        return backend.read(key)

    def read_text(self, path: str) -> str:
        """Return a file's text (UTF-8)."""
        return self.read(path).decode(errors="replace")

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return some of a file's bytes; fewer where it ends before."""
        backend, key = self._at(path)
        return backend.read_range(key, start, length)

    def read_tagged(self, path: str) -> Tagged:
        """Return a file's bytes and its tag."""
        backend, key = self._at(path)
        return backend.read_tagged(key)

    def open(self, path: str, size: int | None = None) -> BinaryIO:
        """Return a file that can be read from anywhere; its size, where that is known, saves requests."""
        backend, key = self._at(path)
        return backend.open(key, size)

    def size(self, path: str) -> int | None:
        """Return a file's size in bytes; None where there is no such file."""
        backend, key = self._at(path)
        return backend.size(key)

    def exists(self, path: str) -> bool:
        """Return whether there is a file; a folder is none."""
        return self.size(path) is not None

    def write(self, path: str, data: bytes) -> None:
        """Write a file in one step: a reader sees all of the old or all of the new."""
        backend, key = self._at(path)
        backend.write(key, data)

    def write_text(self, path: str, text: str) -> None:
        """Write a file's text (UTF-8) in one step."""
        self.write(path, text.encode())

    def create(self, path: str, data: bytes) -> bool:
        """Write a file where there is none; return whether the file there is this one; see `Backend.create`."""
        backend, key = self._at(path)
        return backend.create(key, data)

    def replace(self, path: str, data: bytes, tag: str) -> str | None:
        """Write a file in place of the version with this tag; see `Backend.replace`."""
        backend, key = self._at(path)
        return backend.replace(key, data, tag)

    def writer(self, path: str) -> NewFile:
        """Return a new file to write to, of any size."""
        backend, key = self._at(path)
        return backend.writer(key)

    def names(self, folder: str, after: str | None = None) -> list[str]:
        """Return the names in a folder, files' and folders', sorted; none where there is no folder.

        With `after`, the names of files that are greater.
        """
        if after is not None:
            return sorted(file.key for file in self.files(folder, after) if "/" not in file.key)
        backend, key = self._at(folder)
        return backend.names(key)

    def state(self, folder: str) -> FolderState | None:
        """Return what is in a folder; see `Backend.state`."""
        backend, key = self._at(folder)
        return backend.state(key)

    def files(self, folder: str, after: str | None = None) -> Iterator[StoredFile]:
        """Yield the files below a folder at any depth, their keys being paths from there on.

        Args:
            folder: a path or URI.
            after: only those whose path below the folder is greater than this one.
        """
        backend, key = self._at(folder)
        begin = f"{key}/" if key else ""
        for entry in backend.files(key, None if after is None else f"{begin}{after}"):
            yield replace(entry, key=entry.key[len(begin) :])

    def delete(self, paths: Iterable[str]) -> None:
        """Remove files, all of one store; what is not there is not missed."""
        found = [self._at(path) for path in paths]
        if found:
            found[0][0].delete([key for _, key in found])

    def delete_folder(self, folder: str) -> None:
        """Remove all files below a folder, or the file of this name."""
        backend, key = self._at(folder)
        backend.delete_folder(key)

    def table_exists(self, path: str) -> bool:
        """Return whether a Delta table is at the path."""
        return any(is_version(name) for name in self.names(f"{path}/_delta_log"))

    def table(self, path: str) -> deltalake.DeltaTable:
        """Return the Delta table at the path.

        Raises:
            TableDamaged: its log is cut or overwritten.
            deltalake.exceptions.TableNotFoundError: there is none.
            deltalake.exceptions.DeltaError: it asks more of its readers.
        """
        uri, options = self._table(path)
        with _refusals_as_demux_errors("open", path, options):
            try:
                return deltalake.DeltaTable(uri, storage_options=options)
            except deltalake.exceptions.DeltaError as error:
                if is_damage(text := str(error)):
                    raise damage_error(f"The table {path}", text.partition("\n")[0]) from error
                raise

    def renew(self, table: deltalake.DeltaTable, path: str) -> deltalake.DeltaTable:
        """Return a table that was kept open, or opened again where the credentials that it has are to be renewed."""
        # what it was opened with, which it does not say otherwise
        is_old = self.access.unity_catalog is not None and table._storage_options != self._table(path)[1]
        return self.table(path) if is_old else table

    def catch_up(self, table: deltalake.DeltaTable, path: str) -> deltalake.DeltaTable:
        """Return a table that was kept open, as it is now; reads only what is new in its log.

        Raises:
            StorageFailed: the store refuses to be asked.
        """
        newest = self.renew(table, path)
        with _refusals_as_demux_errors("read", path, newest._storage_options):
            newest.update_incremental()
        return newest

    def known_table(self, path: str) -> deltalake.DeltaTable | None:
        """Return the Delta table at the path; None where there is none, or where only Spark can open it."""
        if not self.reaches_tables(path):
            return None
        try:
            return self.table(path)
        except deltalake.exceptions.DeltaError:  # none is there, or it asks more of its readers
            return None

    def create_table(
        self,
        path: str,
        schema: Mapping[str, Any],
        description: str | None = None,
        partition_by: str | None = None,
    ) -> deltalake.DeltaTable:
        """Return the Delta table at the path, made where there is none with this schema, as Spark writes schemas.

        A table that is there after a failure is the same: another writer made it, or an answer was lost.
        """
        uri, options = self._table(path)
        with _refusals_as_demux_errors("make", path, options):
            try:
                return deltalake.DeltaTable.create(
                    uri,
                    deltalake.Schema.from_json(json.dumps(schema)),
                    mode="ignore",
                    partition_by=partition_by,
                    description=description,
                    storage_options=options,
                )
            except (OSError, deltalake.exceptions.DeltaError):
                with suppress(OSError, deltalake.exceptions.DeltaError):
                    return deltalake.DeltaTable(uri, storage_options=options)
                raise

    def write_table(
        self,
        path: str,
        rows: pa.Table,
        mode: Literal["append", "overwrite"],
        *,
        table: deltalake.DeltaTable | None = None,
        name: str | None = None,
        description: str | None = None,
        transactions: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Add rows to a Delta table, or put them in place of its own, in one commit; makes it where it is not.

        Args:
            rows: in the table's columns.
            mode: whether they are added.
            table: the table as it was read: what another process has committed since then is a conflict.
            name: of a new table.
            description: of a new table.
        """
        uri, options = self._table(path)
        done = [deltalake.Transaction(app_id, version) for app_id, version in transactions.items()]
        with _refusals_as_demux_errors("write", path, options):
            deltalake.write_deltalake(
                table or uri,
                rows,
                mode=mode,
                name=name,
                description=description,
                storage_options=options,
                commit_properties=deltalake.CommitProperties(app_transactions=done),
            )

    def _table(self, path: str) -> tuple[str, dict[str, str] | None]:
        where = self._where(path)
        if where.scheme is Scheme.FILE:
            return where.key, None
        options = {**self.access.table_options(where.scheme), **self.access.timeouts}
        if self.access.unity_catalog is not None:
            # those of now: a table has them as long as it is open (`renew`)
            given = self.access.unity_catalog.credentials().client_options()
            options |= {name.upper(): value for name, value in given.items()}
        return where.url, options

    def _at(self, path: str) -> tuple[Backend, str]:
        where = self.require_reached(path)
        if self.access.unity_catalog is not None and where.scheme is not Scheme.FILE:
            # an error of its own, where the client would have one of its provider
            self.access.unity_catalog.credentials()
        # a client must not be used on both sides of a fork
        return _backend(where.scheme, where.container, self.access, os.getpid()), where.key

    def _where(self, path: str) -> Location:
        return locate(path, self.mounts)


def is_version(name: str) -> bool:
    """Return whether a file of a log is a commit or a checkpoint: who makes a table has other files there before."""
    return _OF_A_VERSION.match(name) is not None


@contextmanager
def _refusals_as_demux_errors(verb: str, path: str, options: Mapping[str, str] | None) -> Iterator[None]:
    """Say in our words why a store did not let `deltalake` do this."""
    try:
        yield
    except OSError as error:
        if options is None:
            raise
        raise refusal(verb, path, "GenericError", str(error)) from error


@lru_cache(maxsize=1)
def _has_tables() -> bool:
    return find_spec("deltalake") is not None


@lru_cache(maxsize=64)
def _backend(scheme: Scheme, container: str, access: StoreAccess, process: int) -> Backend:
    if scheme in {Scheme.FILE, Scheme.MOUNT}:
        return LocalFolder()
    uri = f"{scheme.value}://{container}"
    options: dict[str, Any] = dict(access.timeouts)
    if access.is_plain_http:
        options["allow_http"] = True
    if access.ca_file is not None:
        options["root_certificate"] = Path(access.ca_file).read_text(encoding="ascii")
    # each cloud's options have a type of their own
    from_url: Any = obstore.store.from_url
    provider = None if access.unity_catalog is None else access.unity_catalog.provide
    found = from_url(uri, config=access.client_options(scheme), client_options=options, credential_provider=provider)
    return Bucket(found, uri)
