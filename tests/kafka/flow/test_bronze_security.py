"""Bronze behind each kind of security, and what it says when it is not let in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from demux.core.errors import KafkaRefused, KafkaUnavailable, SettingsInvalid
from demux.core.reports import IngestReport
from tests.support.kafka.intake import Intake, of_chess
from tests.support.kafka.records import Record, make_topic, put
from tools.servers.broker import Broker
from tools.servers.listeners import Listener
from tools.servers.tls.certificates import STORE_PASSWORD
from tools.servers.tls.security import PASSWORDS, Secured

Way = tuple[Listener, Callable[[Secured, str], dict[str, Any]]]
Make = Callable[..., Intake]


def pem(security: Secured, _: str = "") -> dict[str, Any]:
    return {"security_protocol": "SSL", "truststore": str(security.authority.trust.pem)}


def own_pem(security: Secured, user: str) -> dict[str, Any]:
    return {**pem(security), "keystore": str(security.clients[user].pem)}


def own_stores(security: Secured, user: str) -> dict[str, Any]:
    trust = {"truststore": str(security.authority.trust.pkcs12), "truststore_password": "secret:env/STORE"}
    keys = {"keystore": str(security.clients[user].pkcs12), "keystore_password": "secret:env/STORE"}
    return {"security_protocol": "SSL", **trust, **keys}


def login(mechanism: str) -> Callable[[Secured, str], dict[str, Any]]:
    def made(security: Secured, user: str) -> dict[str, Any]:
        token = {"token_url": security.identity.token_url} if mechanism == "OAUTHBEARER" else {}
        who = {"username": user, "password": f"secret:env/{user.upper()}", "sasl_mechanism": mechanism}
        return {**pem(security), "security_protocol": "SASL_SSL", **who, **token}

    return made


WAYS: Mapping[str, Way] = {
    "certificate PEM": (Listener.MTLS, own_pem),
    "certificate PKCS12": (Listener.MTLS, own_stores),
    "PLAIN": (Listener.SASL_SSL, login("PLAIN")),
    "SCRAM": (Listener.SASL_SSL, login("SCRAM-SHA-512")),
    "OAUTHBEARER": (Listener.SASL_SSL, login("OAUTHBEARER")),
}


@pytest.fixture
def root(
    spark: SparkSession,
    tmp_path: Path,
    security: Secured,
    secure_broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
) -> Make:
    """Makes the test's root, that reads a topic in one of the ways."""
    secrets = {**{name.upper(): password for name, password in PASSWORDS.items()}, "STORE": STORE_PASSWORD}
    for name, secret in {**secrets, "BAD": "planted", "LINE": "some.Module planted"}.items():
        monkeypatch.setenv(name, secret)

    def made(way: str, topic: str, user: str = "admin", **changes: Any) -> Intake:
        listener, kafka = WAYS[way]
        settings = {"connect_timeout_s": 10.0, **kafka(security, user), **changes}
        return Intake.at(spark, tmp_path, secure_broker.address(listener), topic, **settings)

    return made


@pytest.fixture(scope="module")
def topic(secure_broker: Broker) -> str:
    """A topic with one record."""
    make_topic(secure_broker.bootstrap, "behind")
    put({"bootstrap.servers": secure_broker.bootstrap}, "behind", Record(of_chess(b"one")))
    return "behind"


@pytest.mark.both_lanes
@pytest.mark.parametrize("way", WAYS)
def test_each_way_in_reads(root: Make, topic: str, way: str) -> None:
    taken = root(way, topic)
    assert taken.ingest() == IngestReport(1, 1, 0)
    assert taken.bronze() == [("behind/0/0", b"one")]


def test_encryption_alone_reads_what_anybody_may(root: Make, topic: str, secure_broker: Broker) -> None:
    # who comes without a certificate is nobody in particular
    taken = root("certificate PKCS12", topic, keystore=None, keystore_password=None)
    assert taken.ingest(bootstrap_servers=secure_broker.address(Listener.SSL)) == IngestReport(1, 1, 0)


@pytest.mark.parametrize("way", ["PLAIN", "SCRAM"])
def test_a_wrong_password_is_told_without_the_password(root: Make, topic: str, secure_broker: Broker, way: str) -> None:
    error = root(way, topic, password="secret:env/BAD").refused(KafkaRefused)
    mechanism = {"PLAIN": "PLAIN", "SCRAM": "SCRAM-SHA-512"}[way]
    assert error.message.startswith(
        f"The broker at {secure_broker.address(Listener.SASL_SSL)} refused the login of user admin by {mechanism}: "
    )
    assert error.remedy == "Correct kafka.username and the secret behind kafka.password."
    assert "planted" not in f"{error!r} {error.fields}"


def test_a_certificate_of_a_strange_authority_is_told(
    root: Make, topic: str, secure_broker: Broker, security: Secured
) -> None:
    error = root("SCRAM", topic, truststore=str(security.stranger.trust.pem)).refused(KafkaRefused)
    assert error.message.startswith(
        f"The certificate of the broker at {secure_broker.address(Listener.SASL_SSL)} is not trusted: "
    )
    assert error.remedy.startswith("Name the authority that signed it under kafka.truststore")


@pytest.mark.both_lanes
def test_a_missing_permission_is_told_with_the_topic_and_reading_is_all_that_is_needed(
    root: Make, topic: str, secure_broker: Broker, allow: Callable[[str, str], None]
) -> None:
    address = secure_broker.address(Listener.SASL_SSL)
    taken = root("SCRAM", topic, "alice")
    error = taken.refused(KafkaRefused)
    assert error.message.startswith(f"At the broker {address}, user alice may not read topic behind: ")
    assert error.remedy == "Have the broker's administrator grant it (an ACL)."
    allow(topic, "DESCRIBE")
    assert taken.refused(KafkaRefused).message == (
        f"At the broker {address}, user alice may not read topic behind: the broker grants other operations only."
    )
    allow(topic, "READ")
    assert taken.ingest() == IngestReport(1, 1, 0)


@pytest.mark.both_lanes
def test_the_three_refusals_are_three_sentences(root: Make, topic: str, security: Secured) -> None:
    errors = [
        root("SCRAM", topic, password="secret:env/BAD").refused(KafkaRefused),
        root("SCRAM", topic, truststore=str(security.stranger.trust.pem)).refused(KafkaRefused),
        root("SCRAM", topic, "alice").refused(KafkaRefused),
    ]
    assert len({error.message for error in errors}) == len({error.remedy for error in errors}) == 3


def test_no_certificate_where_one_is_asked_for_is_told(root: Make, topic: str, secure_broker: Broker) -> None:
    error = root("certificate PEM", topic, keystore=None, connect_timeout_s=5.0).refused(KafkaRefused)
    assert error.message.startswith(
        f"The broker at {secure_broker.address(Listener.MTLS)} does not accept our certificate: "
    )


def test_a_token_that_is_not_given_is_told(root: Make, topic: str, security: Secured) -> None:
    error = root("OAUTHBEARER", topic, password="secret:env/BAD").refused(KafkaRefused)
    assert error.message.startswith(f"The token endpoint {security.identity.token_url} gives no token to user admin: ")
    assert "planted" not in f"{error!r} {error.fields}"


@pytest.mark.parametrize(
    ("listener", "changes"),
    [(Listener.PLAINTEXT, {}), (Listener.SSL, {"security_protocol": "PLAINTEXT", "truststore": None})],
    ids=["TLS to plain", "plain to TLS"],
)
def test_the_wrong_protocol_is_told(
    root: Make, topic: str, secure_broker: Broker, listener: Listener, changes: dict[str, Any]
) -> None:
    settings = {"keystore": None, "connect_timeout_s": 3.0, "bootstrap_servers": secure_broker.address(listener)}
    error = root("certificate PEM", topic, **{**settings, **changes}).refused(KafkaUnavailable)
    assert secure_broker.address(listener) in error.message


def test_a_trust_store_that_cannot_be_opened_is_a_mistake_of_the_settings(root: Make, topic: str) -> None:
    error = root("SCRAM", topic, truststore="/nowhere/ca.pem").refused(SettingsInvalid)
    assert error.message.startswith("The settings under kafka cannot be used: Failed to create admin client: ")
    assert "kafka.truststore (/nowhere/ca.pem) failed" in error.message
    assert error.remedy == "Correct them; the files that they name must be on every machine."
    error = root("certificate PKCS12", topic, keystore_password="secret:env/BAD").refused(SettingsInvalid)
    assert "kafka.keystore (" in error.message
    assert "planted" not in f"{error!r} {error.fields}"


def test_a_login_line_that_cannot_be_read_is_not_repeated(root: Make, topic: str) -> None:
    own = {"sasl_mechanism": None, "username": None, "password": None}
    options = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "secret:env/LINE"}
    error = root("PLAIN", topic, **own, options=options).refused(SettingsInvalid)
    assert "sasl.jaas.config" in error.message
    assert "planted" not in f"{error!r} {error.fields}"
