"""What librdkafka says, told as one of our errors; the texts are what it really said."""

from __future__ import annotations

import pytest

from demux.core.errors import DemuxError, KafkaRefused, KafkaUnavailable, SettingsInvalid, StorageFailed
from demux.core.kafka.reasons import KafkaReason, error_of, most_telling
from demux.core.settings.source import KafkaSettings

KAFKA = KafkaSettings.model_validate(
    {
        "bootstrap_servers": "kafka:9093",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "username": "alice",
        "password": "secret:env/PW",
        "token_url": "https://login/token",
    }
)
DOWN = KafkaReason(
    "_TRANSPORT",
    "kafka:9093/bootstrap: Connect to ipv4#127.0.0.1:9093 failed: Connection refused (after 0ms in state CONNECT)",
)
PASSWORD = KafkaReason(
    "_AUTHENTICATION",
    "sasl_ssl://kafka:9093/bootstrap: SASL authentication error: Authentication failed during authentication due to "
    "invalid credentials with SASL mechanism SCRAM-SHA-512 (after 12ms in state AUTH_REQ)",
)
AUTHORITY = KafkaReason(
    "_SSL",
    "ssl://kafka:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker "
    "certificate could not be verified, verify that ssl.ca.location is correctly configured or root CA certificates "
    "are installed (install ca-certificates package) (after 9ms in state SSL_HANDSHAKE)",
)
LATE = KafkaReason("_TIMED_OUT", "Failed while waiting for controller: Local: Timed out")
ALL_DOWN = KafkaReason("_ALL_BROKERS_DOWN", "1/1 brokers are down")
TOKEN = KafkaReason("_AUTHENTICATION", 'Failed to acquire SASL OAUTHBEARER token: {"error": "invalid_client"}')
CLIENT = KafkaReason(
    "_TRANSPORT",
    "ssl://kafka:9093/bootstrap: Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate: SSL alert "
    "number 42 (after 0ms in state APIVERSION_QUERY)",
)
ACL = KafkaReason("TOPIC_AUTHORIZATION_FAILED", "Broker: Topic authorization failed")


@pytest.mark.parametrize(
    ("reason", "kind", "cause"),
    [
        (
            DOWN,
            KafkaUnavailable,
            "No broker answered at kafka:9093 (SASL_SSL) within 10 s: kafka:9093/bootstrap: Connect to "
            "ipv4#127.0.0.1:9093 failed: Connection refused.",
        ),
        (
            PASSWORD,
            KafkaRefused,
            "The broker at kafka:9093 refused the login of user alice by SCRAM-SHA-512: "
            "sasl_ssl://kafka:9093/bootstrap: SASL authentication error: Authentication failed during authentication "
            "due to invalid credentials with SASL mechanism SCRAM-SHA-512.",
        ),
        (
            AUTHORITY,
            KafkaRefused,
            "The certificate of the broker at kafka:9093 is not trusted: ssl://kafka:9093/bootstrap: SSL handshake "
            "failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not be "
            "verified, verify that ssl.ca.location is correctly configured or root CA certificates are installed "
            "(install ca-certificates package).",
        ),
        (
            TOKEN,
            KafkaRefused,
            "The token endpoint https://login/token gives no token to user alice: Failed to acquire SASL OAUTHBEARER "
            'token: {"error": "invalid_client"}.',
        ),
        (
            CLIENT,
            KafkaRefused,
            "The broker at kafka:9093 does not accept our certificate: ssl://kafka:9093/bootstrap: Receive failed: "
            "error:0A000412:SSL routines::ssl/tls alert bad certificate: SSL alert number 42.",
        ),
        (
            ACL,
            KafkaRefused,
            "At the broker kafka:9093, user alice may not create topic t: Topic authorization failed.",
        ),
        (
            KafkaReason("TOPIC_EXCEPTION", "Topic name is invalid"),
            SettingsInvalid,
            "The broker cannot create topic t: Topic name is invalid.",
        ),
        (
            KafkaReason("_INVALID_ARG", "ssl.ca.location failed: no such file"),
            SettingsInvalid,
            "The settings under kafka cannot be used: kafka.truststore (None) failed: no such file.",
        ),
        (
            KafkaReason("KAFKA_STORAGE_ERROR", "Broker: Disk error when trying to access log file on disk"),
            StorageFailed,
            "The broker cannot create topic t: Disk error when trying to access log file on disk.",
        ),
    ],
)
def test_each_kind_of_failure_has_its_own_error_and_sentence(
    reason: KafkaReason, kind: type[DemuxError], cause: str
) -> None:
    error = error_of(KAFKA, "create topic t", reason)
    assert (type(error), error.message) == (kind, cause)


def test_who_may_not_is_named_with_and_without_a_login() -> None:
    certificate = KafkaSettings.model_validate({"security_protocol": "SSL", "keystore": "own.pem"})
    assert "the owner of our certificate may not write" in error_of(certificate, "write to topic t", ACL).message
    assert "a client without a login may not write" in error_of(KafkaSettings(), "write to topic t", ACL).message


@pytest.mark.parametrize(
    ("reasons", "telling"),
    [
        ([DOWN, LATE], DOWN),
        ([DOWN, ALL_DOWN, LATE], DOWN),
        ([PASSWORD, DOWN, LATE], PASSWORD),
        ([DOWN, AUTHORITY, ALL_DOWN, DOWN], AUTHORITY),
        ([LATE], LATE),
        ([ALL_DOWN, LATE], LATE),
    ],
)
def test_of_all_that_was_heard_a_refusal_or_a_broker_by_name_tells_most(
    reasons: list[KafkaReason], telling: KafkaReason
) -> None:
    assert most_telling(reasons) == telling


def test_only_a_refusal_is_not_worth_waiting_for() -> None:
    reasons = (DOWN, LATE, ALL_DOWN, ACL, PASSWORD, AUTHORITY, TOKEN, CLIENT)
    assert [reason for reason in reasons if reason.is_refusal] == [PASSWORD, AUTHORITY, TOKEN, CLIENT]
