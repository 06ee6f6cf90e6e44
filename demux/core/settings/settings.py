"""Everything a user can set, with its default and a description.

The descriptions are what `demux init` writes, so that the file and this module cannot drift apart.
Relative paths start at the working directory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from demux.core.secrets import FORMS
from demux.core.settings.databricks.compute import Compute
from demux.core.settings.databricks.deployment import DatabricksSettings, Granularity, is_packed
from demux.core.settings.games import GamesSettings, GrantsSettings
from demux.core.settings.maintenance import MaintainSettings
from demux.core.settings.source import (
    ArchiveSettings,
    FramingSettings,
    KafkaSettings,
    PayloadFraming,
    SourceKind,
    SourceSettings,
    WrapperSettings,
)
from demux.core.settings.store import StoreSettings, needs_key
from demux.core.settings.tables import TableSettings, refused_in_workspace
from demux.core.settings.types import Location, Secret, Section, Text, Url, rule


class Decoder(Enum):
    """What turns payload bytes into columns."""

    AUTO = "auto"
    ARROW = "arrow"
    FROM_PROTOBUF = "from_protobuf"


class Engine(Enum):
    """How the games of a round are decoded."""

    AUTO = "auto"
    STREAM = "stream"
    FLEET = "fleet"


def _registry_name(name: str) -> str:
    if name == "default":
        raise ValueError("the section `registry` is the one called default")
    return name


RegistryName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$"), AfterValidator(_registry_name)]


class RegistrySettings(Section):
    """Where the schemas come from: a Confluent-compatible registry under `url`, else a folder."""

    url: Url | None = Field(
        default=None, description="Confluent-compatible schema registry. Default: the folder under `path`."
    )
    path: Location | None = Field(default=None, description="Folder of .proto files. Default: <root>/registry.")
    username: Text | None = Field(default=None, description="User for basic authentication.")
    password: Secret | None = Field(default=None, description=f"Password for basic authentication: {FORMS}.")
    token: Secret | None = Field(default=None, description=f"Bearer token: {FORMS}.")
    ca_file: Location | None = Field(
        default=None, description="PEM file of the certificate authorities to trust. Default: those that Python trusts."
    )
    certificate_file: Location | None = Field(default=None, description="PEM file of our certificate.")
    key_file: Location | None = Field(default=None, description="PEM file of our certificate's key.")
    timeout_s: float = Field(default=10.0, gt=0, le=600, description="Seconds until a request is given up.")
    retries: int = Field(
        default=3, ge=0, le=100, description="Further tries of a request after 429, 5xx or no answer; waits grow."
    )
    messages: Mapping[str, str] = Field(
        default={},
        description="Which message payloads of a subject hold, {subject: full.Name}, where their framing does not say. "
        "Default: the first of the file.",
    )


class GameRegistrySettings(RegistrySettings):
    """A registry for some of the games."""

    games: tuple[Text, ...] = Field(description="Glob patterns of the game names whose schemas are here.")


class Sink(Enum):
    """Who writes the files of bronze, and of silver with the fleet."""

    AUTO = "auto"
    FILES = "files"
    SPARK = "spark"


class RunSettings(Section):
    """How the games' tasks are run."""

    engine: Engine = Field(
        default=Engine.AUTO,
        description="stream: a query for each game. fleet: all games of a round in one Spark job, with the "
        "decoder arrow. auto: fleet for `demux run` and `demux demo` unless the decoder is from_protobuf, stream for "
        "`demux deserialize` and deployments. The tables are the same, and a root may change its engine at any time.",
    )
    rows_per_game: int = Field(
        default=1_000_000,
        ge=1,
        description="Rows of a game in one round of the fleet, about; the rest waits for the next round, so that a "
        "game with many holds up no other.",
    )
    parallelism: int = Field(default=2, ge=1, le=256, description="Games decoded at the same time.")
    retries: int = Field(default=2, ge=0, le=100, description="Further tries of a game after a transient failure.")
    retry_wait_s: float = Field(
        default=1.0,
        ge=0,
        le=3600,
        description="Seconds before the first further try; each later wait is twice as long.",
    )
    sink: Sink = Field(
        default=Sink.AUTO,
        description="Who writes bronze, and silver with the fleet: files (each task its own, one commit for all of "
        "them), spark (Spark's Delta writer), or auto: files where Spark is not needed to open the root's tables (a "
        "folder, or a store, with the extra `tables`) and the table asks for nothing more. It may change at any time.",
    )
    streams_per_cluster: int = Field(
        default=20,
        ge=1,
        le=140,
        description="Most games on one cluster in a plan with engine stream; a cluster has room for 150 tasks.",
    )
    games_per_cluster: int = Field(
        default=1000,
        ge=1,
        description="Most games on one cluster in a plan with engine fleet, which has no task for each.",
    )

    @property
    def per_cluster(self) -> int:
        """Most games that the plan puts on one cluster, with the engine of these settings."""
        return self.games_per_cluster if self.engine is Engine.FLEET else self.streams_per_cluster

    @property
    def per_cluster_key(self) -> str:
        """The dotted key of the setting that says so."""
        return "run.games_per_cluster" if self.engine is Engine.FLEET else "run.streams_per_cluster"


class SparkSettings(Section):
    """The Spark session."""

    master: Text = Field(default="local[*]", description="local[N], local-cluster[N,cores,MiB] or spark://host:port.")
    remote: Text | None = Field(
        default=None,
        pattern="^sc://",
        description="Spark Connect server, sc://host:port, in place of `master`; Spark 4 with the extra `connect`.",
    )
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


class LogFormat(Enum):
    """How records of our log are written."""

    TEXT = "text"
    JSON = "json"


class LogSettings(Section):
    """Our log: `logs/demux.log` below the root, and in a workspace the task's output."""

    format: LogFormat = Field(
        default=LogFormat.TEXT,
        description="text: a line for people. json: an object on a line: time, level, message, game, condition.",
    )


class Settings(Section):
    """All settings; without arguments, the defaults that need no file."""

    root: Location = Field(
        default="demux-data", description="Folder or URI under which every table and checkpoint lives."
    )
    source: SourceSettings = Field(default=SourceSettings(), description="Where the wrappers come from.")
    kafka: KafkaSettings = Field(default=KafkaSettings(), description="The Kafka broker and the topics.")
    archive: ArchiveSettings = Field(
        default=ArchiveSettings(), description="Archived wrapper records, read along with the source."
    )
    wrapper: WrapperSettings = Field(default=WrapperSettings(), description="The envelope around a payload.")
    framing: FramingSettings = Field(default=FramingSettings(), description="Where schema ids are; never guessed.")
    registry: RegistrySettings = Field(default=RegistrySettings(), description="Where the schemas come from.")
    registries: Mapping[RegistryName, GameRegistrySettings] = Field(
        default={},
        description="Further registries, {name: {games: [pattern], url: …}}; a game takes the first that names it, "
        "else `registry`.",
    )
    games: GamesSettings = Field(
        default=GamesSettings(), description="Which games get a table, and which names are refused."
    )
    decoder: Decoder = Field(
        default=Decoder.AUTO,
        description="What decodes payloads; the rows are the same. arrow: ptars in Arrow batches, suits every message. "
        "from_protobuf: Spark's own, where its jar is there and it suits the message. auto: the faster one, arrow.",
    )
    run: RunSettings = Field(default=RunSettings(), description="How the games' tasks are run.")
    maintain: MaintainSettings = Field(
        default=MaintainSettings(), description="What `demux maintain` does, and how often it happens by itself."
    )
    store: StoreSettings = Field(
        default=StoreSettings(), description="The object store of the root, where it is in one."
    )
    tables: TableSettings = Field(
        default=TableSettings(), description="What the tables are called in a catalog, such as Unity Catalog."
    )
    spark: SparkSettings = Field(default=SparkSettings(), description="The Spark session.")
    log: LogSettings = Field(
        default=LogSettings(), description="The log of the commands, and of the tasks of a deployment."
    )
    databricks: DatabricksSettings = Field(
        default=DatabricksSettings(), description="The jobs in a Databricks workspace that run everything."
    )
    grants: GrantsSettings = Field(
        default=GrantsSettings(), description="Who may read which game's table, in Unity Catalog."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        if self.source.kind is SourceKind.FILES and self.archive.path is None:
            raise rule("source.kind: files needs archive.path")
        if self.framing.payload is PayloadFraming.FIELD and self.wrapper.schema_id_field is None:
            raise rule("framing.payload: field needs wrapper.schema_id_field")
        if crowded := self._crowded():
            raise rule(f"games.pinned puts more games on {crowded} than {self.run.per_cluster_key} allows")
        if self.run.engine is Engine.FLEET:
            self._require_suited_to_fleet()
        if self.granularity is Granularity.GAME and self.databricks.tasks_per_job < self.run.streams_per_cluster:
            raise rule("databricks.tasks_per_job must not be less than run.streams_per_cluster")
        if self.databricks.name is not None and (
            wrong := [*self._refused_by_compute(), *refused_in_workspace(self.tables, self.root)]
        ):
            raise rule("; ".join(wrong))
        return self

    def _refused_by_compute(self) -> list[str]:
        databricks = self.databricks
        known = {*self.games.pinned.values(), "bronze", "maintain"}
        wrong = [
            f"databricks.clusters.{name}: no such cluster; name bronze, maintain, cluster_001 and so on, or what "
            "games.pinned names"
            for name in databricks.clusters
            if name not in known and not is_packed(name)
        ]
        if databricks.compute_kind is Compute.SERVERLESS and self.run.sink is Sink.FILES:
            wrong.append(
                "run.sink: files is not for databricks.compute: serverless, where Spark's tasks reach no network; set "
                "run.sink: auto or spark"
            )
        if databricks.compute_kind is Compute.SERVERLESS and self.run.engine is Engine.FLEET:
            wrong.append(
                "run.engine: fleet is not for databricks.compute: serverless, where Spark's tasks reach no network and "
                "cannot write files; set run.engine: auto or stream"
            )
        if databricks.compute_kind is not Compute.DEDICATED and needs_key(self.store, self.root):
            wrong.append(
                f"root is in GCS, and on databricks.compute: {databricks.compute_kind.value} a task has no identity of "
                "the cloud; set store.service_account, or databricks.compute: dedicated"
            )
        return wrong

    def _require_suited_to_fleet(self) -> None:
        if self.decoder is Decoder.FROM_PROTOBUF:
            raise rule("run.engine: fleet is not for decoder: from_protobuf")
        if self.databricks.granularity is Granularity.GAME:
            raise rule(
                "run.engine: fleet decodes all games of a cluster in one task, so databricks.granularity: game is not "
                "for it; leave that out, or set run.engine: stream"
            )

    def _crowded(self) -> str | None:
        pinned = Counter(self.games.pinned.values())
        return next((cluster for cluster, games in pinned.items() if games > self.run.per_cluster), None)

    @property
    def round_engine(self) -> Engine:
        """What decodes the games of a round of `demux run`: STREAM or FLEET."""
        if self.run.engine is Engine.AUTO:
            return Engine.STREAM if self.decoder is Decoder.FROM_PROTOBUF else Engine.FLEET
        return self.run.engine

    @property
    def task_engine(self) -> Engine:
        """What decodes the games of `demux deserialize`, and so of a deployment's tasks: STREAM or FLEET."""
        return Engine.STREAM if self.run.engine is Engine.AUTO else self.run.engine

    @property
    def granularity(self) -> Granularity:
        """What one task of a deployment runs: with the fleet, or on serverless compute, all games of a cluster."""
        by_cluster = self.task_engine is Engine.FLEET or self.databricks.compute_kind is Compute.SERVERLESS
        return self.databricks.granularity or (Granularity.CLUSTER if by_cluster else Granularity.GAME)

    @property
    def source_path(self) -> str:
        """The source table's path or URI."""
        return self.source.path or self.under_root("source")

    @property
    def registry_path(self) -> str:
        """The registry folder's path or URI."""
        return self.registry.path or self.under_root("registry")

    def under_root(self, *segments: str) -> str:
        """The path or URI of `segments` under the root; each segment must be safe already (see `demux.core.names`)."""
        return "/".join((self.root.rstrip("/"), *segments))
