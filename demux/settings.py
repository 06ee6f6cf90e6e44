"""Everything a user can set, with its default and a description.

The descriptions are what `demux init` writes, so that the file and this module cannot drift apart.
Relative paths start at the working directory.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from demux.names import MAX_NAME_BYTES, invalid_reason


class Policy(Enum):
    """Which games get a silver table."""

    AUTO = "auto"
    ALLOW_LIST = "allow-list"


class Decoder(Enum):
    """What turns payload bytes into columns."""

    AUTO = "auto"
    ARROW = "arrow"
    FROM_PROTOBUF = "from_protobuf"


def _location(text: str) -> str:
    if not text.strip():
        raise ValueError("a path or URI must not be blank")
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in text):
        raise ValueError("a path or URI must not have control characters")
    # nothing here expands `~`, so a folder of that name would appear in the working directory
    if text == "~" or text.startswith("~/"):
        raise ValueError("`~` is not expanded; write the whole path")
    return text


def _game(name: str) -> str:
    if reason := invalid_reason(name, MAX_NAME_BYTES):
        raise ValueError(reason)
    return name


Location = Annotated[str, AfterValidator(_location)]
Game = Annotated[str, AfterValidator(_game)]
Text = Annotated[str, Field(min_length=1)]


class _Section(BaseModel):
    """A group of settings; immutable, and no key that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SourceSettings(_Section):
    """Where the wrappers come from."""

    path: Location | None = Field(default=None, description="Delta table of wrapper bytes. Default: <root>/source.")
    max_files_per_batch: int | None = Field(
        default=None,
        ge=1,
        description="Most files of the source in one micro-batch of bronze. Default: Delta's own limit.",
    )


class RegistrySettings(_Section):
    """Where the schemas come from."""

    path: Location | None = Field(default=None, description="Folder of .proto files. Default: <root>/registry.")


class GamesSettings(_Section):
    """Which games get a table, and which names are refused."""

    policy: Policy = Field(
        default=Policy.AUTO,
        description="auto: a game gets its table when its first record comes, up to `limit` games. "
        "allow-list: only the games under `allow` do; the records of all others wait in bronze.",
    )
    allow: tuple[Game, ...] = Field(default=(), description="Exact names of the games that always get a table.")
    limit: int = Field(
        default=1000, ge=0, description="Most games that may appear by themselves; the rest waits in bronze."
    )
    max_name_bytes: int = Field(
        default=MAX_NAME_BYTES,
        ge=1,
        le=MAX_NAME_BYTES,
        description="Longest game name in UTF-8 bytes; a record with a longer one goes to quarantine. At most "
        f"{MAX_NAME_BYTES}: escaping in a folder name can triple it, and a folder name may have 255 bytes.",
    )


class RunSettings(_Section):
    """How the games' tasks are run."""

    parallelism: int = Field(default=2, ge=1, le=256, description="Games decoded at the same time.")
    retries: int = Field(default=2, ge=0, le=100, description="Further tries of a game after a transient failure.")
    retry_wait_s: float = Field(
        default=1.0,
        ge=0,
        le=3600,
        description="Seconds before the first further try; each later wait is twice as long.",
    )
    streams_per_cluster: int = Field(
        default=20,
        ge=1,
        le=140,
        description="Most games that the plan puts on one cluster; a cluster has room for 150 tasks.",
    )


class SparkSettings(_Section):
    """The Spark session."""

    master: Text = Field(default="local[*]", description="local[N], local-cluster[N,cores,MiB] or spark://host:port.")
    shuffle_partitions: int = Field(
        default=2, ge=1, description="Partitions after a shuffle; few, as the tables are small."
    )
    driver_memory: str = Field(
        default="2g", pattern=r"^[1-9][0-9]*[kmgt]$", description="Memory of the driver, such as 2g."
    )
    packages: tuple[Text, ...] | None = Field(
        default=None, description="JVM packages, group:name:version. Default: what the installed Spark needs; []: none."
    )
    conf: Mapping[str, str] = Field(default={}, description="Further Spark properties, such as spark.ui.enabled: true.")


class Settings(_Section):
    """All settings; without arguments, the defaults that need no file."""

    root: Location = Field(
        default="demux-data", description="Folder or URI under which every table and checkpoint lives."
    )
    source: SourceSettings = Field(default=SourceSettings(), description="Where the wrappers come from.")
    registry: RegistrySettings = Field(default=RegistrySettings(), description="Where the schemas come from.")
    games: GamesSettings = Field(
        default=GamesSettings(), description="Which games get a table, and which names are refused."
    )
    decoder: Decoder = Field(
        default=Decoder.AUTO,
        description="What decodes payloads; the rows are the same. arrow: ptars in Arrow batches, suits every message. "
        "from_protobuf: Spark's own, where its jar is there and it suits the message. auto: the faster one, arrow.",
    )
    run: RunSettings = Field(default=RunSettings(), description="How the games' tasks are run.")
    spark: SparkSettings = Field(default=SparkSettings(), description="The Spark session.")

    @property
    def source_path(self) -> str:
        """The source table's path or URI."""
        return self.source.path or self.under_root("source")

    @property
    def registry_path(self) -> str:
        """The registry folder's path or URI."""
        return self.registry.path or self.under_root("registry")

    def under_root(self, *segments: str) -> str:
        """The path or URI of `segments` under the root; each segment must be safe already (see `demux.names`)."""
        return "/".join((self.root.rstrip("/"), *segments))
