"""The login line that we write, read by the Kafka client that Spark brings."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from demux.core.kafka.client_options import java_options
from demux.core.settings.source import KafkaSettings

HOSTILE = [
    "plain",
    'say "hi"; user="root";',
    "back\\slash\\",
    "\\101\\n\\u0041",
    "line\nbreak\r\ttab",
    "apo'strophe // # /* comment */ ${x}",
    "żółć \U0001f3b2 日本",
    " leading and trailing ",
    "\x00\x07\x7f",
]


def read_by_kafka(spark: SparkSession, line: str) -> Any:
    """The one entry of the line: `getLoginModuleName`, and `getOptions` as a dictionary."""
    jvm: Any = spark._jvm
    settings = jvm.java.util.HashMap()
    settings["sasl.jaas.config"] = jvm.org.apache.kafka.common.config.types.Password(line)
    (entry,) = jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(settings).configurationEntries()
    return entry


def has_class(spark: SparkSession, name: str) -> bool:
    jvm: Any = spark._jvm
    return jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name) is not None


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_user_and_password_arrive_as_they_are(spark: SparkSession, mechanism: str, text: str) -> None:
    kafka = KafkaSettings.model_validate(
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "username": text,
            "password": "secret:env/PW",
            "token_url": "https://login/token",
            "token_scope": text,
        }
    )
    options = java_options(kafka, {"PW": text}).reveal()
    entry = read_by_kafka(spark, options["kafka.sasl.jaas.config"])
    assert has_class(spark, entry.getLoginModuleName())
    given = {"clientId": text, "clientSecret": text, "scope": text}
    assert dict(entry.getOptions()) == (given if mechanism == "OAUTHBEARER" else {"username": text, "password": text})


def test_the_class_that_fetches_tokens_is_there(spark: SparkSession) -> None:
    kafka = KafkaSettings.model_validate(
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "username": "u",
            "password": "secret:env/PW",
            "token_url": "https://login/token",
        }
    )
    options = java_options(kafka, {"PW": "p"}).reveal()
    assert has_class(spark, options["kafka.sasl.login.callback.handler.class"])
