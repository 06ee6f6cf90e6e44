"""A deployment in a workspace whose tasks run here: its root is on another file system, as a cluster's would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from demux.core.names import names_of
from demux.core.protobuf.schema.descriptor_pool import message_class, pool_of
from demux.core.protobuf.schema.protoc import compile_schema
from demux.core.registry.confluent.http_client import Rest
from demux.core.registry.confluent.registry import ConfluentRegistry
from demux.core.root.layout import Layout
from demux.core.settings.settings import RegistrySettings
from demux.core.storage.files import Storage
from demux.core.streaming.session import SHORT_LIVED
from install_workflow.databricks.jobs.compute import cluster_of
from install_workflow.databricks.jobs.task_arguments import options
from tests.fakes.registry_server import FakeRegistry
from tests.fakes.workspace.fake import FakeWorkspace
from tests.support.databricks.deployments import small_wheel
from tests.support.flow.process import Command, Said
from tests.support.flow.root import Rows, rows, wrapper

WHEELS = "/Volumes/main/ops/wheels"
SCHEMA = 'syntax = "proto3"; message Event { string name = 1; int64 score = 2; }'
_PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment `prod`, its workspace and registry, and a folder of this machine that Spark knows as viewfs://.

    Attributes:
        folder: the working directory of the command line, with demux.yml.
        lake: what is below the mount point, as this machine's own files.
        workspace: where the jobs are.
        registry: where the schemas are.
    """

    folder: Path
    lake: Path
    workspace: FakeWorkspace
    registry: FakeRegistry

    @property
    def uri(self) -> str:
        """The lake as Spark has it; each test has a mount table of its own, as Hadoop keeps them."""
        return f"viewfs://{self._table}/lake"

    @property
    def layout(self) -> Layout:
        """The root's tables, as a task has them."""
        return Layout(f"{self.uri}/root", Storage(mounts=self._mounts))

    @property
    def _mounts(self) -> dict[str, str]:
        return {self.uri: str(self.lake)}

    @property
    def conf(self) -> dict[str, str]:
        """The Spark properties by which the lake is found."""
        return {f"spark.hadoop.fs.viewfs.mounttable.{self._table}.link./lake": self.lake.as_uri()}

    @property
    def _table(self) -> str:
        return f"t{abs(hash(str(self.lake))) % 10**9}"

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a task on a cluster: the login, and what the cluster itself knows of the lake."""
        return {
            **self.workspace.environ,
            "DATABRICKS_CONFIG_FILE": str(self.folder / "no.cfg"),
            "DEMUX_SPARK__CONF": json.dumps({**self.conf, **SHORT_LIVED}),
            "DEMUX_SPARK__MASTER": "local[2]",
        }

    def mount(self, spark: SparkSession) -> None:
        """Let this process's own session find the lake."""
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        for name, value in self.conf.items():
            hadoop.set(name.removeprefix("spark.hadoop."), value)

    def wish(self, **sections: Mapping[str, Any]) -> None:
        """Write demux.yml: of a deployment on serverless compute, or on clusters where the fleet asks for them."""
        databricks = {"name": "prod", "wheel_path": WHEELS, "auto_apply": True, **sections.pop("databricks", {})}
        if sections.get("run", {}).get("engine") == "fleet":
            databricks["cluster"] = {"node_type": "i3.xlarge"}
        settings = {
            "root": f"{self.uri}/root",
            "source": {"path": f"{self.uri}/source"},
            "store": {"mounts": self._mounts},
            "registry": {"url": self.registry.url, "retries": 0},
            "run": {"retry_wait_s": 0},
            "databricks": databricks,
            **sections,
        }
        with (self.folder / "demux.yml").open("w", encoding="utf-8") as file:
            YAML().dump(settings, file)

    def install(self, command: Command) -> Said:
        """Apply from the working directory, without a look at bronze."""
        return command("apply", "--yes", "--wheel", str(small_wheel(self.folder)))

    def send(self, *games: str, events: int = 2) -> None:
        """Append records of these games to the source, with a schema that is registered for each."""
        registry = ConfluentRegistry(Rest(RegistrySettings(url=self.registry.url), {}))
        records = []
        for game in games:
            schema_id = registry.register(f"{names_of(game).key}-value", SCHEMA, "event.proto", ())
            compiled = compile_schema(registry.schema(schema_id))
            event = message_class(pool_of(FileDescriptorSet.FromString(compiled.descriptor_set)), compiled.message)
            payloads = (event(name=game, score=number).SerializeToString() for number in range(events))
            records += [wrapper(game, schema_id, payload) for payload in payloads]
        write_deltalake(str(self.lake / "source"), pa.table({"value": pa.array(records, pa.binary())}), mode="append")

    def parameters(self, key: str) -> list[str]:
        """What the workspace would tell the task of this key."""
        (task,) = (task for task in self._tasks() if task["task_key"] == key)
        found: list[str] = task["python_wheel_task"]["parameters"]
        return found

    def run_alone(self, key: str) -> Said:
        """Run a task in a process of its own, elsewhere, with nothing but its parameters and its environment."""
        cluster = self.folder / "cluster"
        cluster.mkdir(exist_ok=True)
        ours = ("DEMUX_", "DATABRICKS_", "SPARK_", "PYSPARK_")
        ended = subprocess.run(
            [str(Path(sys.executable).with_name("demux")), *self.parameters(key)],
            cwd=cluster,
            env={**{k: v for k, v in os.environ.items() if not k.startswith(ours)}, **self.environ},
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr)

    def games_in_tasks(self) -> set[str]:
        """The games that the tasks are told, those by key as `key:<key>`."""
        found: set[str] = set()
        for task in self._tasks():
            if task["task_key"].startswith("deserialize_"):
                given = options(task["python_wheel_task"]["parameters"])
                found.update((*given.get("game", ()), *(f"key:{key}" for key in given.get("game-key", ()))))
        return found

    def clusters(self) -> dict[str, str]:
        """The cluster or pack of each game that a task is told by its name."""
        given = ((task, options(task["python_wheel_task"]["parameters"])) for task in self._tasks())
        placed = ((cluster_of(task["task_key"], task), words) for task, words in given)
        return {game: str(cluster) for cluster, words in placed for game in words.get("game", ())}

    def silver(self, game: str) -> Rows:
        """The rows of the game's table."""
        return rows(self.lake / "root" / "silver" / names_of(game).key)

    def quarantine(self) -> Rows:
        """The rows of quarantine."""
        return rows(self.lake / "root" / "quarantine")

    def _tasks(self) -> Iterable[Mapping[str, Any]]:
        return (task for job in self.workspace.jobs.held.values() for task in job.settings["tasks"])
