"""The producer behind each kind of security, and what it says when it is not let in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from demux.core.errors import DemuxError, KafkaRefused, KafkaUnavailable, SettingsInvalid
from demux.core.settings.source import KafkaSettings
from producer.kafka.sink import MARKS, KafkaSink
from tests.support.kafka.produced import read, records, settings, topics
from tests.support.kafka.records import make_topic
from tools.servers.broker import Broker
from tools.servers.listeners import Listener
from tools.servers.tls.certificates import STORE_PASSWORD
from tools.servers.tls.security import PASSWORDS, Secured

SECRETS = {
    **{name.upper(): password for name, password in PASSWORDS.items()},
    "STORE": STORE_PASSWORD,
    "BAD": "planted",
}
# what the producer's user needs on its own topic and on the one of marks
NEEDED = ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE", "DELETE")


def login(mechanism: str, user: str) -> dict[str, str]:
    return {"sasl_mechanism": mechanism, "username": user, "password": f"secret:env/{user.upper()}"}


def ssl(security: Secured, user: str) -> dict[str, str]:
    return {"security_protocol": "SSL", "keystore": str(security.clients[user].pem)}


WAYS: Mapping[str, tuple[Listener, Callable[[Secured, str], dict[str, Any]]]] = {
    "certificate_pem": (Listener.MTLS, ssl),
    "certificate_p12": (
        Listener.MTLS,
        lambda security, user: {
            "security_protocol": "SSL",
            "keystore": str(security.clients[user].pkcs12),
            "keystore_password": "secret:env/STORE",
        },
    ),
    "plain": (Listener.SASL_SSL, lambda _, user: {"security_protocol": "SASL_SSL", **login("PLAIN", user)}),
    "scram": (Listener.SASL_SSL, lambda _, user: {"security_protocol": "SASL_SSL", **login("SCRAM-SHA-512", user)}),
    "token": (
        Listener.SASL_SSL,
        lambda security, user: {
            "security_protocol": "SASL_SSL",
            **login("OAUTHBEARER", user),
            "token_url": security.identity.token_url,
        },
    ),
}


def secure(
    security: Secured, broker: Broker, way: str, user: str = "admin", topic: str | None = None, **more: Any
) -> KafkaSettings:
    listener, made = WAYS[way]
    common = {"truststore": str(security.authority.trust.pem), "connect_timeout_s": 10.0}
    return settings(broker.address(listener), topic or f"secure_{way}", **{**common, **made(security, user), **more})


def write_error(kafka: KafkaSettings, kind: type[DemuxError] = KafkaRefused) -> DemuxError:
    with pytest.raises(kind) as failure:
        KafkaSink(kafka, SECRETS).write(records(b"x"))
    return failure.value


@pytest.mark.parametrize("way", WAYS)
def test_each_way_in_sends_reads_and_cleans_up(security: Secured, secure_broker: Broker, way: str) -> None:
    kafka = secure(security, secure_broker, way)
    sink = KafkaSink(kafka, SECRETS)
    sink.write(records(b"one", b"two"))
    assert [row[3] for row in read(secure_broker.bootstrap, kafka.topics[0])] == [b"one", b"two"]
    assert sink.newest(1).values == [b"two"]
    assert sink.remove() is True
    assert topics(secure_broker.bootstrap) & {kafka.topics[0], MARKS} == set()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told_without_the_password(
    security: Secured, secure_broker: Broker, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "demux")
    kafka = secure(security, secure_broker, "plain", sasl_mechanism=mechanism, password="secret:env/BAD")
    error = write_error(kafka)
    assert error.message.startswith(
        f"The broker at {secure_broker.address(Listener.SASL_SSL)} refused the login of user admin by {mechanism}: "
    )
    assert error.remedy == "Correct kafka.username and the secret behind kafka.password."
    assert "planted" not in f"{error!r} {error.fields} {caplog.text}"


def test_a_certificate_of_a_strange_authority_is_told(security: Secured, secure_broker: Broker) -> None:
    error = write_error(secure(security, secure_broker, "scram", truststore=str(security.stranger.trust.pem)))
    assert error.message.startswith(
        f"The certificate of the broker at {secure_broker.address(Listener.SASL_SSL)} is not trusted: "
    )
    assert error.remedy.startswith("Name the authority that signed it under kafka.truststore")


def test_a_missing_permission_is_told_with_what_was_tried(
    security: Secured, secure_broker: Broker, allow: Callable[[str, str], None]
) -> None:
    kafka = secure(security, secure_broker, "scram", "alice", topic="not_allowed")
    address = secure_broker.address(Listener.SASL_SSL)
    assert write_error(kafka).message == (
        f"At the broker {address}, user alice may not describe topic not_allowed: Topic authorization failed."
    )
    for operation in NEEDED:
        allow(MARKS, operation)
    allow("not_allowed", "DESCRIBE")
    assert write_error(kafka).message == (
        f"At the broker {address}, user alice may not create topic not_allowed: Authorization failed."
    )
    assert "not_allowed" not in topics(secure_broker.bootstrap)
    allow("not_allowed", "CREATE")
    error = write_error(kafka)
    assert error.message == (
        f"At the broker {address}, user alice may not write to topic not_allowed: Topic authorization failed."
    )
    assert error.remedy == "Have the broker's administrator grant it (an ACL)."
    allow("not_allowed", "WRITE")
    KafkaSink(kafka, SECRETS).write(records(b"allowed"))
    assert [row[3] for row in read(secure_broker.bootstrap, "not_allowed")] == [b"allowed"]


def test_permissions_on_two_topics_are_all_that_is_needed(
    security: Secured, secure_broker: Broker, allow: Callable[[str, str], None]
) -> None:
    for topic in ("alices", MARKS):
        for operation in NEEDED:
            allow(topic, operation)
    kafka = secure(security, secure_broker, "scram", "alice", topic="alices")
    sink = KafkaSink(kafka, SECRETS)
    sink.write(records(b"one"))
    assert sink.newest(1).values == [b"one"]
    assert KafkaSink(kafka, SECRETS).position().sent == 1
    assert sink.remove() is True


def test_the_three_refusals_are_three_sentences(security: Secured, secure_broker: Broker) -> None:
    errors = [
        write_error(secure(security, secure_broker, "scram", password="secret:env/BAD")),
        write_error(secure(security, secure_broker, "scram", truststore=str(security.stranger.trust.pem))),
        write_error(secure(security, secure_broker, "scram", "alice")),
    ]
    assert len({error.message for error in errors}) == len({error.remedy for error in errors}) == 3


def test_no_certificate_where_one_is_asked_for_is_told(security: Secured, secure_broker: Broker) -> None:
    kafka = secure(security, secure_broker, "certificate_pem", keystore=None, connect_timeout_s=3.0)
    assert write_error(kafka).message.startswith(
        f"The broker at {secure_broker.address(Listener.MTLS)} does not accept our certificate: "
    )


def test_a_token_that_is_not_given_is_told(security: Secured, secure_broker: Broker) -> None:
    kafka = secure(security, secure_broker, "token", password="secret:env/BAD", connect_timeout_s=3.0)
    error = write_error(kafka)
    assert error.message.startswith(f"The token endpoint {security.identity.token_url} gives no token to user admin: ")
    assert "planted" not in repr(error)


@pytest.mark.parametrize(
    ("listener", "protocol"), [(Listener.PLAINTEXT, "SSL"), (Listener.SSL, "PLAINTEXT")], ids=lambda each: str(each)
)
def test_the_wrong_protocol_is_told_as_no_answer(
    security: Secured, secure_broker: Broker, listener: Listener, protocol: str
) -> None:
    trust = {"truststore": str(security.authority.trust.pem)} if protocol == "SSL" else {}
    kafka = settings(secure_broker.address(listener), "t", security_protocol=protocol, connect_timeout_s=2.0, **trust)
    error = write_error(kafka, KafkaUnavailable)
    assert f"({protocol}) within 2 s" in error.message
    assert "kafka.security_protocol" in error.remedy


def test_a_trust_store_that_is_not_there_is_a_mistake_of_the_settings(security: Secured, secure_broker: Broker) -> None:
    error = write_error(secure(security, secure_broker, "scram", truststore="/nowhere/ca.pem"), SettingsInvalid)
    assert "kafka.truststore (/nowhere/ca.pem) failed" in error.message


def test_somebody_elses_topic_on_a_secure_broker_stays(security: Secured, secure_broker: Broker) -> None:
    make_topic(secure_broker.bootstrap, "foreign")
    assert KafkaSink(secure(security, secure_broker, "scram", topic="foreign"), SECRETS).remove() is False
    assert "foreign" in topics(secure_broker.bootstrap)
