"""docker-compose.yml says the same as `make up`, as far as that can be seen without Docker."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest
from ruamel.yaml import YAML

from demux.core.settings.loading.loader import load
from tools.servers.broker import PROPERTIES
from tools.servers.detached import BROKER_PORT, REGISTRY_PORT, STORE_PORT
from tools.servers.packages import KAFKA_VERSION, REGISTRY_VERSION
from tools.servers.registry import API
from tools.servers.stores import s3 as s3_server

PROJECT = Path(__file__).parents[4]
DOCKERFILE = PROJECT / "docker" / "spark.Dockerfile"
COMPOSE: Mapping[str, Any] = YAML(typ="safe").load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: Mapping[str, Mapping[str, Any]] = COMPOSE["services"]


def published(service: str) -> list[str]:
    return list(SERVICES[service].get("ports", ()))


def test_a_broker_a_registry_an_s3_server_a_master_and_two_workers_are_started() -> None:
    started = [name for name, service in SERVICES.items() if "profiles" not in service]
    assert started == ["kafka", "registry", "store", "spark-master", "spark-worker-1", "spark-worker-2"]


@pytest.mark.parametrize(
    ("service", "port"), [("kafka", BROKER_PORT), ("registry", REGISTRY_PORT), ("store", STORE_PORT)]
)
def test_the_servers_are_where_make_up_puts_them(service: str, port: int) -> None:
    assert [binding.rpartition(":")[0] for binding in published(service)] == [f"127.0.0.1:{port}"]


def test_everything_is_published_on_this_machine_only() -> None:
    bindings = [binding for service in SERVICES for binding in published(service)]
    assert len(bindings) == len(set(bindings)) == 5
    assert [binding for binding in bindings if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", binding)] == []


@pytest.mark.parametrize(
    ("service", "image"),
    [
        ("kafka", f"apache/kafka:{KAFKA_VERSION}"),
        ("registry", f"apicurio/apicurio-registry:{REGISTRY_VERSION}"),
        ("store", f"versity/versitygw:v{s3_server.version()}"),
    ],
)
def test_the_images_have_the_versions_of_the_packages(service: str, image: str) -> None:
    assert SERVICES[service]["image"] == image


def test_the_cluster_runs_the_spark_that_is_locked() -> None:
    locked = re.findall(r"^pyspark==([\d.]+)", (PROJECT / "locks" / "current.txt").read_text(), re.MULTILINE)
    assert re.findall(r"^FROM apache/spark:([\d.]+)-", DOCKERFILE.read_text(), re.MULTILINE) == locked
    cluster = [name for name in SERVICES if name not in ("kafka", "registry", "store")]
    assert {SERVICES[name]["image"] for name in cluster} == {f"protobuf-demux-spark:{locked[0]}"}
    assert {SERVICES[name]["build"]["dockerfile"] for name in cluster} == {"docker/spark.Dockerfile"}
    if pyspark.__version__.startswith("4."):
        assert pyspark.__version__ == locked[0]


def test_the_broker_is_found_from_this_machine_and_from_the_containers() -> None:
    environment = SERVICES["kafka"]["environment"]
    assert environment["KAFKA_ADVERTISED_LISTENERS"] == f"HOST://127.0.0.1:{BROKER_PORT},INTERNAL://kafka:29092"
    names = {part.split(":")[0] for part in environment["KAFKA_LISTENERS"].split(",")}
    assert names == {part.split(":")[0] for part in environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")}


def test_both_brokers_have_the_same_properties() -> None:
    environment = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in SERVICES["kafka"]["environment"].items()
    }
    # the names of the listeners differ on purpose
    shared = (environment.keys() & PROPERTIES.keys()) - {"inter.broker.listener.name"}
    assert {name: environment[name] for name in shared} == {name: PROPERTIES[name] for name in shared}
    assert len(shared) >= 7


@pytest.mark.parametrize("service", [name for name in SERVICES if name != "demux"])
def test_every_server_has_a_check_of_its_health(service: str) -> None:
    assert SERVICES[service]["healthcheck"]["test"][0] == "CMD"


def test_the_driver_is_told_where_everything_is_by_settings_that_exist() -> None:
    settings = load(None, SERVICES["demux"]["environment"], {})
    assert settings.root == "/data"
    assert settings.spark.master == "spark://spark-master:7077"
    assert settings.kafka.bootstrap_servers == "kafka:29092"
    assert settings.registry.url == f"http://registry:8080{API}"
    assert SERVICES["demux"]["volumes"] == ["demux-data:/data"] == SERVICES["spark-worker-1"]["volumes"]


def test_the_image_is_built_from_what_the_wheel_needs() -> None:
    sent = {line.removeprefix("!") for line in (PROJECT / ".dockerignore").read_text().splitlines() if line[0] == "!"}
    wheel = re.search(r"only-include = \[(.*?)\]", (PROJECT / "pyproject.toml").read_text(), re.DOTALL)
    assert wheel is not None
    needed = {path.split("/")[0] for path in re.findall(r'"(.+?)"', wheel[1])}
    assert sent == needed | {"locks", "pyproject.toml", "README.md"}


def test_the_s3_server_has_the_keys_and_the_bucket_of_make_up() -> None:
    store = SERVICES["store"]
    assert store["environment"] == {
        "ROOT_ACCESS_KEY_ID": s3_server.ACCESS_KEY,
        "ROOT_SECRET_ACCESS_KEY": s3_server.SECRET_KEY,
    }
    (bucket,) = s3_server.ObjectStoreSettings().buckets
    assert f"mkdir -p /data/{bucket} " in store["command"][-1]
    assert f"--region {s3_server.REGION} " in store["command"][-1]
