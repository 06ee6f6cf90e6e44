"""A Kafka broker: one KRaft node that is its own controller, on 127.0.0.1."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demux.core.root.layout import cache_folder
from tools.servers.errors import ServerFailed, last_lines
from tools.servers.java import JAVA, SHORT_LIVED
from tools.servers.listeners import SECURE, Listener, Security, security_properties
from tools.servers.packages import KAFKA, installed
from tools.servers.ports import HOST, free_ports
from tools.servers.process import Launch, Life, Server

# any will do, and the same one lets a broker find its data again
_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
_CONTROLLER = "CONTROLLER"
_FORMAT_S = 60.0
# the client tells of every attempt that was refused
_SILENT = logging.getLogger("tools.servers.silent")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_JAVA_OPTIONS = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    # several hundred lines of settings
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config.AbstractConfig=warn",
)
# of every broker; docker-compose.yml says the same where it says anything
PROPERTIES: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": _CONTROLLER,
    "inter.broker.listener.name": Listener.PLAINTEXT.value,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # a broker that was killed comes back only when its old session is over
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # a topic that expires or compacts does so while a test looks
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    # of the heap, for each cleaner; the default takes 128 MB
    "log.cleaner.dedupe.buffer.size": "16777216",
}


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The options of one broker.

    Attributes:
        ports: where its listeners are; free ones are chosen for those that are not named.
        max_message_bytes: `message.max.bytes`, for topics that do not set their own.
        life: what happens to it when the starting process ends.
    """

    ports: Mapping[Listener, int] = field(default_factory=dict)
    max_message_bytes: int = 1_048_588
    heap_mb: int = 384
    java_options: Sequence[str] = SHORT_LIVED
    life: Life = Life.WITH_STARTER
    properties: Mapping[str, str] = field(default_factory=dict)


class Broker(Server):
    """A broker; started again, it has its data of before."""

    start_s = 60.0

    def __init__(self, launch: Launch, ports: Mapping[Listener, int]) -> None:
        self._ports = ports
        super().__init__(launch)

    @property
    def bootstrap(self) -> str:
        """The plain listener as `host:port`."""
        return self.address(Listener.PLAINTEXT)

    def address(self, listener: Listener) -> str:
        """Return the listener as `host:port`."""
        return f"{HOST}:{self._ports[listener]}"

    def _probe(self) -> Callable[[], bool]:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 200}, logger=_SILENT)
        return lambda: _answers(client)


def start_broker(folder: Path, settings: BrokerSettings | None = None, security: Security | None = None) -> Broker:
    """Return a broker that answers, with its data and its log in the folder.

    Fetches Kafka the first time. A folder that already holds a broker's data is used again.

    Args:
        settings: what differs from a small broker for a test.
        security: opens the secure listeners, and the authorizer checks what is done by ACLs.

    Raises:
        PackagesUnavailable: Kafka could not be fetched.
        PortTaken: another process listens on one of its ports.
        ServerFailed: the broker did not start; with the end of its log.
    """
    settings = settings or BrokerSettings()
    listeners = (Listener.PLAINTEXT, *(SECURE if security else ()))
    controller, *free = free_ports(1 + len(listeners))
    ports = dict(zip(listeners, free, strict=True)) | dict(settings.ports)
    folder.mkdir(parents=True, exist_ok=True)
    properties = folder / "server.properties"
    properties.write_text(_text(_properties(folder, settings, security, ports, controller)), encoding="utf-8")
    java = [JAVA, f"-Xmx{settings.heap_mb}m", *settings.java_options, *_JAVA_OPTIONS]
    if security:
        java.append(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={security.key_set}")
    kafka = [*java, "-cp", f"{installed(KAFKA, cache_folder(os.environ))}/*"]
    log = folder / "broker.log"
    _format([*kafka, "kafka.tools.StorageTool"], properties, log, security.passwords if security else {})
    return Broker(
        Launch(
            "broker", [*kafka, "kafka.Kafka", str(properties)], folder, log, {}, tuple(ports.values()), settings.life
        ),
        ports,
    )


def _properties(
    folder: Path,
    settings: BrokerSettings,
    security: Security | None,
    ports: Mapping[Listener, int],
    controller: int,
) -> dict[str, str]:
    addresses = {listener.value: (listener.protocol, port) for listener, port in ports.items()}
    addresses[_CONTROLLER] = ("PLAINTEXT", controller)
    return {
        **PROPERTIES,
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, (_, port) in addresses.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, (protocol, _) in addresses.items()),
        "log.dirs": str(folder / "data"),
        "message.max.bytes": str(settings.max_message_bytes),
        **(security_properties(security) if security else {}),
        **settings.properties,
    }


def _text(properties: Mapping[str, str]) -> str:
    # a backslash is an escape in this format
    return "".join(f"{name}={value}\n".replace("\\", "\\\\") for name, value in properties.items())


def _format(tool: Sequence[str], properties: Path, log: Path, passwords: Mapping[str, str]) -> None:
    """Make an empty data folder, with the accounts of SCRAM; one that is there already stays as it is."""
    accounts = [
        word
        for name, password in passwords.items()
        for word in ("--add-scram", f"SCRAM-SHA-512=[name={name},password={password}]")
    ]
    words = [*tool, "format", "-t", _CLUSTER_ID, "-c", str(properties), "--ignore-formatted", *accounts]
    with log.open("ab") as out:
        ended = subprocess.run(words, stdout=out, stderr=out, timeout=_FORMAT_S, check=False)
    if ended.returncode:
        raise ServerFailed(
            f"The broker's data folder could not be made; its log ends with:\n{last_lines(log)}",
            f"The whole log is {log}.",
            server="broker",
        )


def _answers(client: AdminClient) -> bool:
    try:
        return bool(client.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False
