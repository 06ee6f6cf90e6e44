"""The root of the settings: where its tables are, and how they are reached from this process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from demux.core.settings.settings import Settings
from demux.core.settings.store import access_of
from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from demux.core.storage.location import Scheme, locate
from demux.core.tables import Layout


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

    Args:
        settings: all settings.
        environ: where `secret:env/NAME` is looked up.

    Raises:
        SecretMissing: as `demux.core.secrets.resolve`.
    """
    return Storage.here(access_of(settings.store, environ))
