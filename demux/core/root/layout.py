"""The root of the settings: where its tables are, and how they are reached from this process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demux.core.errors import SettingsInvalid, StorageFailed
from demux.core.extras import on_databricks
from demux.core.root.lock import is_elsewhere
from demux.core.settings.settings import Settings
from demux.core.settings.store import access_of
from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from demux.core.storage.location import Scheme, locate
from demux.core.storage.table_address import CatalogNames


def s3_access(settings: Settings) -> StoreAccess | None:
    """Return how Spark reaches S3, where the root, the source or the archive is there; None where nothing is.

    Raises:
        SecretMissing: as `demux.core.secrets.resolve`.
    """
    used = (settings.root, settings.source_path, settings.archive.path or "")
    return layout_of(settings).storage.access if any(locate(path).scheme is Scheme.S3 for path in used) else None


def layout_of(settings: Settings) -> Layout:
    """Return the tables of the root; reads the environment and resolves secrets.

    Raises:
        SecretMissing: as `demux.core.secrets.resolve`.
    """
    return Layout(settings.root, storage_for(settings, os.environ))


def storage_for(settings: Settings, environ: Mapping[str, str]) -> Storage:
    """Return how this process reaches files by the settings.

    Raises:
        SecretMissing: as `demux.core.secrets.resolve`.
    """
    access = access_of(settings.store, environ, settings.root)
    return Storage.here(access, settings.store.mounts, names_of_tables(settings))


def names_of_tables(settings: Settings) -> CatalogNames | None:
    """Return what the settings call the tables of the root; None without a catalog."""
    tables = settings.tables
    if tables.catalog is None:
        return None
    return CatalogNames(
        settings.root,
        tables.catalog,
        bronze=tables.bronze,
        silver=tables.silver,
        quarantine=tables.quarantine_schema,
        control=tables.control_schema,
    )


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's folder for what of ours may be lost; it need not be there."""
    try:
        home = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        # a container's user may have no home
        home = Path(tempfile.gettempdir(), f"cache-{os.getuid()}")
    return home / "protobuf-demux"


def logs_of(root: str) -> Path:
    """Return the folder of log files: below a root on this machine, else beside us.

    On Databricks it is a temporary one of this process: many tasks share a driver, and may not write where they begin.
    """
    if not is_elsewhere(root):
        return Path(Layout(root).logs)
    if on_databricks():
        return Path(tempfile.gettempdir()) / f"demux-logs-{os.getpid()}"
    return Path("demux-logs")


def require_root(layout: Layout, *, may_be_new: bool = False) -> None:
    """Check that something is below the root, and that it may be read: else all tables look as if they were not there.

    Raises:
        SettingsInvalid: nothing is there, unless it may be new, or a file is.
        StorageFailed: the root, or a folder in it, cannot be read.
    """
    root = layout.root
    remedy = "Name it by --root, or by `root` in demux.yml; `demux run` makes a new one."
    if locate(root).scheme is not Scheme.FILE:
        if not may_be_new and layout.storage.reaches(root) and not layout.storage.names(root):
            raise SettingsInvalid(f"There is nothing below the root {root}.", remedy, root=root)
        return
    try:
        for inside in Path(root).iterdir():
            if inside.is_dir():
                os.scandir(inside).close()
    except FileNotFoundError as error:
        if may_be_new:
            return
        raise SettingsInvalid(f"There is no root {root}.", remedy, root=root) from error
    except NotADirectoryError as error:
        raise SettingsInvalid(f"The root {root} is a file, not a folder.", remedy, root=root) from error
    except OSError as error:
        raise StorageFailed(
            f"The root {root} cannot be read: {error.strerror} ({error.filename}).",
            "Grant read permission to the user that runs this, on the root and all below it; nothing was changed.",
            root=root,
        ) from error


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths under one root; `key` is a game's key (`demux.core.names`), never its name."""

    root: str
    storage: Storage = field(default_factory=Storage)

    @property
    def bronze(self) -> str:
        """The bronze table."""
        return f"{self.root}/bronze"

    @property
    def quarantine(self) -> str:
        """The one quarantine table of all stages."""
        return f"{self.root}/quarantine"

    @property
    def schemas(self) -> str:
        """The table of schemas in use."""
        return f"{self.root}/control/schemas"

    @property
    def games(self) -> str:
        """The table of deployed games."""
        return f"{self.root}/control/games"

    @property
    def deployments(self) -> str:
        """The table of games in the jobs of a workspace."""
        return f"{self.root}/control/deployments"

    @property
    def rounds(self) -> str:
        """The table of finished tasks."""
        return f"{self.root}/control/rounds"

    @property
    def approvals(self) -> str:
        """The table of approved schemas."""
        return f"{self.root}/control/approvals"

    @property
    def topics(self) -> str:
        """The table of topics that were read."""
        return f"{self.root}/control/topics"

    @property
    def gaps(self) -> str:
        """The table of offsets that were lost and given up."""
        return f"{self.root}/control/gaps"

    @property
    def dropped(self) -> str:
        """The table of rows that were dropped from quarantine."""
        return f"{self.root}/control/dropped"

    @property
    def removed(self) -> str:
        """The table of rows that were taken out of bronze."""
        return f"{self.root}/control/removed"

    @property
    def backfills(self) -> str:
        """The table of backfills, day by day."""
        return f"{self.root}/control/backfills"

    @property
    def maintenance(self) -> str:
        """The file that says when the tables were maintained, and what of it is under way."""
        return f"{self.root}/control/maintenance.json"

    @property
    def forget(self) -> str:
        """The table of requests to forget a person that are done."""
        return f"{self.root}/control/forget"

    @property
    def removal(self) -> str:
        """The file that says what `demux destroy` removes, until it has."""
        return f"{self.root}/control/removal.json"

    @property
    def no_archive(self) -> str:
        """An empty folder used as the archive where none is named; a root in a store has none."""
        return f"{self.root}/control/no-archive"

    @property
    def bronze_checkpoint(self) -> str:
        """The checkpoint of the bronze stream."""
        return f"{self.root}/checkpoints/bronze"

    @property
    def logs(self) -> str:
        """The folder of log files."""
        return f"{self.root}/logs"

    def silver(self, key: str) -> str:
        """Return the path of a game's silver table."""
        return f"{self.root}/silver/{key}"

    def silver_checkpoint(self, key: str) -> str:
        """Return the path of the checkpoint of a game's stream."""
        return f"{self.root}/checkpoints/silver/{key}"
