"""The real servers, each started when a test first asks for it, one of each for the whole session."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.support.kafka.records import PATIENCE_S, SILENT
from tools.servers.broker import Broker, BrokerSettings, start_broker
from tools.servers.registry import Registry, start_registry
from tools.servers.tls.security import Secured, secured

# room for a record of 10 MB
_MAX_MESSAGE_BYTES = 20_000_000


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker without any checks. Topics are not made by themselves; nobody stops or kills this one."""
    settings = BrokerSettings(max_message_bytes=_MAX_MESSAGE_BYTES)
    with start_broker(tmp_path_factory.mktemp("broker"), settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def security(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Certificates, accounts and a token endpoint; with the options that clients of the secure servers need."""
    with secured(tmp_path_factory.mktemp("security")) as made:
        yield made


@pytest.fixture(scope="session")
def secure_broker(security: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with all listeners; `admin` may do everything, `alice` what ACLs allow."""
    with start_broker(tmp_path_factory.mktemp("secure_broker"), security=security.security) as broker:
        yield broker


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry that lets everybody in."""
    with start_registry(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="session")
def secure_registry(security: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry behind HTTPS that lets only accounts in, by basic authentication or bearer token."""
    with start_registry(tmp_path_factory.mktemp("secure_registry"), security=security.registry) as registry:
        yield registry


@pytest.fixture
def allow(secure_broker: Broker) -> Iterator[Callable[[str, str], None]]:
    """Lets alice do an operation on a topic; taken back after the test."""
    client = AdminClient({"bootstrap.servers": secure_broker.bootstrap}, logger=SILENT)

    def allowed(topic: str, operation: str) -> None:
        what = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*")
        binding = AclBinding(*what, AclOperation[operation], AclPermissionType.ALLOW)
        for made in client.create_acls([binding]).values():
            made.result(PATIENCE_S)

    yield allowed
    everything = AclBindingFilter(
        ResourceType.TOPIC,
        None,  # type: ignore[arg-type]  # any name
        ResourcePatternType.ANY,
        "User:alice",
        "*",
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    for gone in client.delete_acls([everything]).values():
        gone.result(PATIENCE_S)
