from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from demux.core.storage.access import StoreAccess
from demux.core.storage.files import Storage
from tests.support.kafka.records import PATIENCE_S, SILENT, make_topic, received, send
from tools.servers.broker import Broker, BrokerSettings, start_broker
from tools.servers.errors import PortTaken, ServerFailed
from tools.servers.listeners import Listener
from tools.servers.ports import free_ports, is_free
from tools.servers.registry import Registry, start_registry
from tools.servers.stores.s3 import ACCESS_KEY, SECRET_KEY
from tools.servers.tls.identity import IdentityProvider
from tools.servers.tls.security import Mechanism, Secured

PROJECT = Path(__file__).parents[3]

POINT = 'syntax = "proto3"; package game; message Point { int32 x = 1; int32 y = 2; }'
MOVE = 'syntax = "proto3"; package game; import "game/point.proto"; message Move { Point to = 1; }'


def to(broker: Broker, listener: Listener, options: Mapping[str, str]) -> dict[str, str]:
    return {**options, "bootstrap.servers": broker.address(listener)}


def refusal(options: Mapping[str, str]) -> list[KafkaError]:
    """What the client was told while it could not talk to the broker."""
    errors: list[KafkaError] = []
    config: dict[str, Any] = {**options, "error_cb": errors.append}
    client = AdminClient(config, logger=SILENT)
    with pytest.raises(Exception, match="Failed to get metadata"):
        client.list_topics(timeout=3)
    client.poll(0)
    return errors


def by(mechanism: Mechanism) -> Callable[[Secured, str], dict[str, str]]:
    return lambda security, account: security.sasl(mechanism, account)


# how an account shows who it is
WAYS: Mapping[str, tuple[Listener, Callable[[Secured, str], dict[str, str]]]] = {
    "mTLS": (Listener.MTLS, Secured.mutual_tls),
    **{mechanism.value: (Listener.SASL_SSL, by(mechanism)) for mechanism in Mechanism},
}


class TestBroker:
    def test_a_record_comes_back_as_it_was_sent(self, broker: Broker) -> None:
        options = {"bootstrap.servers": broker.bootstrap}
        make_topic(broker.bootstrap, "plain")
        assert send(options, "plain", b"one", b"two") == [None, None]
        assert received(options, "plain", 2) == [b"one", b"two"]

    def test_a_topic_is_not_made_by_itself(self, broker: Broker) -> None:
        client = Producer({"bootstrap.servers": broker.bootstrap, "allow.auto.create.topics": "true"})
        assert client.list_topics("never_made", PATIENCE_S).topics["never_made"].error is not None
        assert "never_made" not in client.list_topics(timeout=PATIENCE_S).topics

    def test_a_record_of_ten_megabytes_passes(self, broker: Broker) -> None:
        options = {"bootstrap.servers": broker.bootstrap, "message.max.bytes": "20000000"}
        make_topic(broker.bootstrap, "large")
        assert send(options, "large", bytes(10_000_000)) == [None]

    def test_killed_and_started_again_it_has_its_records_at_the_same_address(self, tmp_path: Path) -> None:
        with start_broker(tmp_path / "broker") as broker:
            before = broker.bootstrap
            options = {"bootstrap.servers": before}
            make_topic(before, "kept")
            assert send(options, "kept", b"one") == [None]
            broker.kill()
            assert is_free(int(before.rpartition(":")[2]))
            broker.restart()
            assert broker.bootstrap == before
            assert send(options, "kept", b"two") == [None]
            assert received(options, "kept", 2) == [b"one", b"two"]

    def test_a_broker_does_not_start_where_another_one_listens(self, tmp_path: Path, broker: Broker) -> None:
        taken = int(broker.bootstrap.rpartition(":")[2])
        with pytest.raises(PortTaken, match=broker.bootstrap):
            start_broker(tmp_path / "broker", BrokerSettings(ports={Listener.PLAINTEXT: taken}))

    def test_a_broker_that_cannot_start_says_what_its_log_says(self, tmp_path: Path) -> None:
        settings = BrokerSettings(properties={"metric.reporters": "no.such.Reporter"})
        with pytest.raises(ServerFailed, match=r"no\.such\.Reporter"):
            start_broker(tmp_path / "broker", settings)


class TestSecureBroker:
    def test_records_pass_through_tls(self, secure_broker: Broker, security: Secured) -> None:
        options = to(secure_broker, Listener.SSL, security.tls())
        make_topic(secure_broker.bootstrap, "by_tls")
        assert send(options, "by_tls", b"one") == [None]
        assert received(options, "by_tls", 1) == [b"one"]

    @pytest.mark.parametrize("way", WAYS)
    def test_the_administrator_needs_no_acl(self, secure_broker: Broker, security: Secured, way: str) -> None:
        listener, options_of = WAYS[way]
        options = to(secure_broker, listener, options_of(security, "admin"))
        make_topic(secure_broker.bootstrap, f"admin_{way}")
        assert send(options, f"admin_{way}", b"one") == [None]
        assert received(options, f"admin_{way}", 1) == [b"one"]

    @pytest.mark.parametrize("way", WAYS)
    def test_an_account_may_do_what_an_acl_allows_and_nothing_else(
        self, secure_broker: Broker, security: Secured, way: str
    ) -> None:
        topic = f"alice_{way}"
        listener, options_of = WAYS[way]
        options = to(secure_broker, listener, options_of(security, "alice"))
        make_topic(secure_broker.bootstrap, topic)
        (refused,) = send(options, topic, b"too early")
        assert refused is not None
        assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        allow(secure_broker, topic, AclOperation.WRITE)
        assert send(options, topic, b"allowed") == [None]

    @pytest.mark.parametrize("mechanism", [Mechanism.SCRAM, Mechanism.PLAIN])
    def test_a_wrong_password_is_refused(self, secure_broker: Broker, security: Secured, mechanism: Mechanism) -> None:
        options = to(secure_broker, Listener.SASL_SSL, security.sasl(mechanism, "alice"))
        errors = refusal({**options, "sasl.password": "wrong"})
        assert KafkaError._AUTHENTICATION in [error.code() for error in errors]

    def test_a_wrong_client_secret_gets_no_token(self, secure_broker: Broker, security: Secured) -> None:
        options = to(secure_broker, Listener.SASL_SSL, security.sasl(Mechanism.BEARER, "alice"))
        errors = refusal({**options, "sasl.oauthbearer.client.secret": "wrong"})
        assert KafkaError._AUTHENTICATION in [error.code() for error in errors]

    def test_a_token_that_somebody_else_signed_is_refused(
        self, secure_broker: Broker, security: Secured, tmp_path: Path
    ) -> None:
        with IdentityProvider(tmp_path, security.security.passwords) as stranger:
            options = to(secure_broker, Listener.SASL_SSL, security.sasl(Mechanism.BEARER, "alice"))
            errors = refusal({**options, "sasl.oauthbearer.token.endpoint.url": stranger.token_url})
        assert KafkaError._AUTHENTICATION in [error.code() for error in errors]

    def test_a_client_that_trusts_another_authority_refuses_the_broker(
        self, secure_broker: Broker, security: Secured
    ) -> None:
        options = to(secure_broker, Listener.SSL, security.tls())
        errors = refusal({**options, "ssl.ca.location": str(security.stranger.trust.pem)})
        assert KafkaError._SSL in [error.code() for error in errors]

    def test_mutual_tls_refuses_a_client_without_a_certificate(self, secure_broker: Broker, security: Secured) -> None:
        assert refusal(to(secure_broker, Listener.MTLS, security.tls())) != []


def allow(broker: Broker, topic: str, operation: AclOperation) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_acls([binding])[binding].result(PATIENCE_S)


class TestRegistry:
    def test_a_schema_with_a_reference_comes_back_by_its_id(self, registry: Registry) -> None:
        with SchemaRegistryClient({"url": registry.url}) as client:
            client.register_schema("game/point.proto", Schema(POINT, "PROTOBUF"))
            point = SchemaReference("game/point.proto", "game/point.proto", 1)
            schema_id = client.register_schema("moves-value", Schema(MOVE, "PROTOBUF", [point]))
            stored = client.get_schema(schema_id)
            assert stored.schema_str == MOVE
            assert stored.references == [point]

    def test_an_unknown_id_has_the_code_that_the_protocol_says(self, registry: Registry) -> None:
        with SchemaRegistryClient({"url": registry.url}) as client, pytest.raises(SchemaRegistryError) as error:
            client.get_schema(987_654)
        assert error.value.error_code == 40403

    def test_started_again_it_is_empty_and_at_the_same_address(self, tmp_path: Path) -> None:
        with start_registry(tmp_path / "registry") as registry, SchemaRegistryClient({"url": registry.url}) as client:
            client.register_schema("point", Schema(POINT, "PROTOBUF"))
            registry.kill()
            registry.restart()
            assert client.get_subjects() == []

    def test_basic_authentication_over_https_lets_an_account_in(
        self, secure_registry: Registry, security: Secured
    ) -> None:
        options = {"url": secure_registry.url, "ssl.ca.location": str(security.authority.trust.pem)}
        with SchemaRegistryClient({**options, "basic.auth.user.info": "alice:alice-secret"}) as client:
            assert client.register_schema("point", Schema(POINT, "PROTOBUF")) > 0
        with (
            SchemaRegistryClient({**options, "basic.auth.user.info": "alice:wrong"}) as client,
            pytest.raises(SchemaRegistryError) as error,
        ):
            client.get_subjects()
        assert error.value.http_status_code == 401

    @pytest.mark.parametrize(("life_s", "status"), [(60, 200), (-60, 401)])
    def test_a_bearer_token_lets_in_until_it_expires(
        self, secure_registry: Registry, security: Secured, life_s: int, status: int
    ) -> None:
        token = security.identity.token("alice", life_s)
        assert status_of(f"{secure_registry.url}/subjects", security, f"Bearer {token}") == status

    def test_nobody_gets_in_without_an_account(self, secure_registry: Registry, security: Secured) -> None:
        assert status_of(f"{secure_registry.url}/subjects", security, None) == 401


def status_of(url: str, security: Secured, authorization: str | None) -> int:
    request = urllib.request.Request(url, headers={"Authorization": authorization} if authorization else {})
    context = ssl.create_default_context(cafile=str(security.authority.trust.pem))
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


class TestUpAndDown:
    def test_up_starts_both_once_and_down_leaves_nothing(self, tmp_path: Path) -> None:
        broker_port, registry_port, store_port = free_ports(3)
        folder = tmp_path / "up"

        def servers(command: str) -> tuple[int, str]:
            ended = subprocess.run(
                [
                    sys.executable, "-m", "tools.servers", command, "--folder", str(folder),
                    "--broker-port", str(broker_port), "--registry-port", str(registry_port),
                    "--store-port", str(store_port),
                ],
                cwd=PROJECT, capture_output=True, text=True, check=False,
            )  # fmt: skip
            return ended.returncode, ended.stdout + ended.stderr

        try:
            code, said = servers("up")
            assert (code, f"127.0.0.1:{broker_port}" in said) == (0, True), said
            state = json.loads((folder / "state.json").read_text())
            make_topic(f"127.0.0.1:{broker_port}", "kept")
            code, said = servers("up")
            assert (code, said.splitlines()[0]) == (0, "All servers run already.")
            assert json.loads((folder / "state.json").read_text()) == state
            assert servers("status")[0] == 0
            with SchemaRegistryClient({"url": f"http://127.0.0.1:{registry_port}/apis/ccompat/v7"}) as client:
                assert client.get_subjects() == []
            access = StoreAccess(f"http://127.0.0.1:{store_port}", None, ACCESS_KEY, SECRET_KEY)
            assert Storage(access).names("s3://demux") == []
        finally:
            code, said = servers("down")
        assert (code, said.splitlines()[:-1]) == (
            0,
            ["Kafka broker stopped", "schema registry stopped", "S3 server stopped"],
        )
        assert said.splitlines()[-1].startswith("Their data is gone: ")
        assert not folder.exists()
        assert is_free(broker_port)
        assert is_free(registry_port)
        assert servers("down") == (0, "Nothing of ours runs.\n")
