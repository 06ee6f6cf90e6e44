"""Errors of librdkafka as our errors. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from demux.core.errors import DemuxError, KafkaRefused, KafkaUnavailable, SettingsInvalid, StorageFailed
from demux.core.settings.source import KafkaSettings

_LOGIN = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"})
_LATE = frozenset({"_TIMED_OUT", "_MSG_TIMED_OUT", "_ALL_BROKERS_DOWN", "REQUEST_TIMED_OUT"})
_NO_ANSWER = _LATE | {"_TRANSPORT", "_RESOLVE"}
_ORDER = frozenset({"TOPIC_EXCEPTION", "INVALID_PARTITIONS", "INVALID_REPLICATION_FACTOR", "POLICY_VIOLATION"})
# "127.0.0.1:9092/bootstrap: … (after 0ms in state CONNECT, 1 identical error(s) suppressed)"
_STATE = re.compile(r" \((?:after|in state) [^()]*(?:\([^()]*\)[^()]*)*\)$")
_FOREIGN_AUTHORITY = re.compile(r"certificate verify failed|hostname mismatch", re.IGNORECASE)
_OWN_CERTIFICATE = re.compile(r"alert (?:\w+ )?(?:certificate|ca)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KafkaReason:
    """Why something failed, in librdkafka's words.

    Attributes:
        code: the name of the error code, such as `_TRANSPORT` (its own) or `TOPIC_AUTHORIZATION_FAILED` (the broker's).
    """

    code: str
    text: str

    @property
    def is_refusal(self) -> bool:
        """Whether trying again cannot help."""
        return self.code in _LOGIN or self.is_foreign_authority or self.is_own_certificate

    @property
    def is_foreign_authority(self) -> bool:
        """Whether we do not trust the broker's certificate."""
        return self.code == "_SSL" and _FOREIGN_AUTHORITY.search(self.text) is not None

    @property
    def is_own_certificate(self) -> bool:
        """Whether the broker does not trust ours; it says so after the handshake, as it ends the connection."""
        return self.code in {"_SSL", "_TRANSPORT"} and _OWN_CERTIFICATE.search(self.text) is not None

    @property
    def is_permission(self) -> bool:
        """Whether the broker knows us, and does not let us."""
        return self.code.endswith("_AUTHORIZATION_FAILED")

    @property
    def is_late(self) -> bool:
        """Whether it only says that time ran out, not why."""
        return self.code in _LATE

    @property
    def sentence(self) -> str:
        """The text without what only a debugger wants to know, and without a full stop."""
        return _STATE.sub("", self.text.removeprefix("Broker: ").removeprefix("Local: ")).rstrip("\n. ")


def error_of(kafka: KafkaSettings, what: str, reason: KafkaReason) -> DemuxError:
    """Return the error of a call that failed for this reason; `what` was tried, such as `write to topic events`."""
    why = reason.sentence
    if reason.is_permission:
        return not_permitted(kafka, what, why)
    if reason.is_refusal:
        return _refusal(kafka, reason)
    if reason.code in _NO_ANSWER or reason.code == "_SSL":
        return KafkaUnavailable(
            f"No broker answered at {kafka.bootstrap_servers} ({kafka.security_protocol.value}) "
            f"within {kafka.connect_timeout_s:g} s: {why}.",
            "Start the broker, or correct kafka.bootstrap_servers and kafka.security_protocol.",
            **_about(kafka, why),
        )
    if reason.code in _ORDER:
        return SettingsInvalid(f"The broker cannot {what}: {why}.", "Correct kafka.topics.", reason=reason.text)
    if reason.code == "_INVALID_ARG":
        return SettingsInvalid(
            f"The settings under kafka cannot be used: {_with_files(kafka, why)}.",
            "Correct them; the files that they name must be on every machine.",
            reason=reason.text,
        )
    return StorageFailed(f"The broker cannot {what}: {why}.", "Run again later.", reason=reason.text)


def _refusal(kafka: KafkaSettings, reason: KafkaReason) -> KafkaRefused:
    """Return the error of a login or a certificate that one side does not accept."""
    servers, why = kafka.bootstrap_servers, reason.sentence
    if reason.is_foreign_authority:
        return KafkaRefused(
            f"The certificate of the broker at {servers} is not trusted: {why}.",
            "Name the authority that signed it under kafka.truststore, and under kafka.bootstrap_servers a host that "
            "it names.",
            **_about(kafka, why),
        )
    if reason.is_own_certificate:
        return KafkaRefused(
            f"The broker at {servers} does not accept our certificate: {why}.",
            "Name a certificate that it trusts, with its key, under kafka.keystore.",
            **_about(kafka, why),
        )
    if "token" in reason.text.lower():
        return KafkaRefused(
            f"The token endpoint {kafka.token_url} gives no token to {_user(kafka)}: {why}.",
            "Correct kafka.token_url, kafka.username and the secret behind kafka.password.",
            **_about(kafka, why),
        )
    mechanism = kafka.sasl_mechanism.value if kafka.sasl_mechanism else kafka.security_protocol.value
    return KafkaRefused(
        f"The broker at {servers} refused the login of {_user(kafka)} by {mechanism}: {why}.",
        "Correct kafka.username and the secret behind kafka.password.",
        **_about(kafka, why),
    )


def not_permitted(kafka: KafkaSettings, what: str, why: str) -> KafkaRefused:
    """Return the error of a missing permission; `what` follows "may not", such as `write to topic events`."""
    return KafkaRefused(
        f"At the broker {kafka.bootstrap_servers}, {_user(kafka)} may not {what}: {why}.",
        "Have the broker's administrator grant it (an ACL).",
        **_about(kafka, why),
    )


def _about(kafka: KafkaSettings, why: str) -> dict[str, object]:
    return {"bootstrap_servers": kafka.bootstrap_servers, "reason": why}


def _user(kafka: KafkaSettings) -> str:
    if kafka.username is not None:
        return f"user {kafka.username}"
    return "a client without a login" if kafka.keystore is None else "the owner of our certificate"


def _with_files(kafka: KafkaSettings, sentence: str) -> str:
    """Return the sentence with the settings in place of librdkafka's options, which seldom say which file it is."""
    store = f"kafka.keystore ({kafka.keystore})"
    names = {"ssl.ca.location": f"kafka.truststore ({kafka.truststore})"}
    names |= dict.fromkeys(("ssl.keystore.location", "ssl.certificate.location", "ssl.key.location"), store)
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], sentence)


def most_telling(reasons: list[KafkaReason]) -> KafkaReason:
    """Return the reason that says most about why no broker answers: a refusal, else the newest that names a broker."""
    refusals = [reason for reason in reasons if reason.is_refusal]
    naming = [reason for reason in reasons if not reason.is_late]
    return (refusals or naming or reasons)[-1]
