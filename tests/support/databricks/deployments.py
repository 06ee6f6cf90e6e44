"""The settings of a deployment, a small wheel for it, and what a command line is to a test."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

WHEEL_NAME = "protobuf_demux-0.1.0-py3-none-any.whl"
SETTINGS: dict[str, Any] = {
    "root": "s3://lake/demux",
    "games": {"allow": ["chess", "go", "ludo"]},
    "databricks": {
        "name": "prod",
        "cluster": {"node_type": "i3.xlarge"},
        "wheel_path": "/Volumes/main/ops/wheels",
        "permissions": {"groups": {"analysts": "CAN_VIEW"}},
    },
    # one job less to look at
    "maintain": {"every": "never"},
}

# the output of a command line, without `demux` before it
Demux = Callable[..., str]


def write_settings(folder: Path, **changes: dict[str, Any]) -> None:
    """Write demux.yml, some sections with other values."""
    merged = {**SETTINGS, **{name: {**SETTINGS.get(name, {}), **value} for name, value in changes.items()}}
    with (folder / "demux.yml").open("w", encoding="utf-8") as file:
        YAML().dump(merged, file)


def write_serverless(folder: Path, every: str = "never", **databricks: Any) -> None:
    """Write demux.yml with the least that a deployment needs, which is on serverless compute, and what is given.

    Args:
        folder: where.
        every: how often tables are maintained.
        databricks: settings of the workspace.
    """
    least = {"name": "prod", "wheel_path": "/Volumes/main/ops/wheels"}
    settings = {**SETTINGS, "root": "s3://bucket/demux", "databricks": {**least, **databricks}}
    settings |= {"maintain": {"every": every}}
    with (folder / "demux.yml").open("w", encoding="utf-8") as file:
        YAML().dump(settings, file)


def small_wheel(folder: Path, text: str = "one", compression: int = zipfile.ZIP_STORED) -> Path:
    """The file of a wheel that has one module with this text."""
    path = folder / WHEEL_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("demux/__init__.py"), text, compression)
        archive.writestr(zipfile.ZipInfo("protobuf_demux-0.1.0.dist-info/METADATA"), "Name: protobuf-demux\n")
    return path
