"""What can go wrong between us and a broker, in one sentence each, whichever client saw it. Pure."""

from __future__ import annotations

from demux.core.errors import KafkaRefused, KafkaUnavailable, SettingsInvalid
from demux.core.settings.source import KafkaSettings


def unavailable(kafka: KafkaSettings, reason: str) -> KafkaUnavailable:
    """Return the error of brokers that do not answer, or not in our protocol."""
    return KafkaUnavailable(
        f"No broker answered at {kafka.bootstrap_servers} ({kafka.security_protocol.value}) "
        f"within {kafka.connect_timeout_s:g} s: {reason}.",
        "Start the broker, or correct kafka.bootstrap_servers and kafka.security_protocol.",
        **_about(kafka, reason),
    )


def login_refused(kafka: KafkaSettings, reason: str) -> KafkaRefused:
    """Return the error of a wrong user or password."""
    mechanism = kafka.sasl_mechanism.value if kafka.sasl_mechanism else kafka.security_protocol.value
    return KafkaRefused(
        f"The broker at {kafka.bootstrap_servers} refused the login of {_user(kafka)} by {mechanism}: {reason}.",
        "Correct kafka.username and the secret behind kafka.password.",
        **_about(kafka, reason),
    )


def token_refused(kafka: KafkaSettings, reason: str) -> KafkaRefused:
    """Return the error of a token endpoint that gives no token."""
    return KafkaRefused(
        f"The token endpoint {kafka.token_url} gives no token to {_user(kafka)}: {reason}.",
        "Correct kafka.token_url, kafka.username and the secret behind kafka.password.",
        **_about(kafka, reason),
    )


def certificate_refused(kafka: KafkaSettings, reason: str) -> KafkaRefused:
    """Return the error of a broker whose certificate we do not trust."""
    return KafkaRefused(
        f"The certificate of the broker at {kafka.bootstrap_servers} is not trusted: {reason}.",
        "Name the authority that signed it under kafka.truststore, and under kafka.bootstrap_servers a host that "
        "it names.",
        **_about(kafka, reason),
    )


def own_certificate_refused(kafka: KafkaSettings, reason: str) -> KafkaRefused:
    """Return the error of a broker that does not trust us."""
    return KafkaRefused(
        f"The broker at {kafka.bootstrap_servers} does not accept our certificate: {reason}.",
        "Name a certificate that it trusts, with its key, under kafka.keystore.",
        **_about(kafka, reason),
    )


def not_permitted(kafka: KafkaSettings, what: str, reason: str) -> KafkaRefused:
    """Return the error of a missing permission; `what` follows "may not", such as `write to topic events`."""
    return KafkaRefused(
        f"At the broker {kafka.bootstrap_servers}, {_user(kafka)} may not {what}: {reason}.",
        "Have the broker's administrator grant it (an ACL).",
        **_about(kafka, reason),
    )


def pattern_refused(kafka: KafkaSettings, reason: str) -> SettingsInvalid:
    """Return the error of a pattern that is no regular expression, or one of Java alone."""
    return SettingsInvalid(
        f"kafka.topic_pattern {kafka.topic_pattern} is no regular expression that Python reads too: {reason}.",
        "Correct it, or name the topics under kafka.topics.",
        **_about(kafka, reason),
    )


def _user(kafka: KafkaSettings) -> str:
    if kafka.username is not None:
        return f"user {kafka.username}"
    return "a client without a login" if kafka.keystore is None else "the owner of our certificate"


def _about(kafka: KafkaSettings, reason: str) -> dict[str, object]:
    return {"bootstrap_servers": kafka.bootstrap_servers, "reason": reason}
