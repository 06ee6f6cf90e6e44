"""Kafka settings as options of librdkafka and of Java's client."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from demux.core.errors import SecretMissing, SettingsInvalid
from demux.core.kafka.client_options import StoreType, java_options, librdkafka_options, store_type
from demux.core.settings.source import KafkaSettings
from tools.servers.tls.certificates import STORE_PASSWORD, Authority

PLANTED = 'pa"ss\\word\n\u00fc\U0001f3b2;$'
SECRETS = {"PW": PLANTED, "KEY": "key-password"}
DATABRICKS = {**SECRETS, "DATABRICKS_RUNTIME_VERSION": "17.3"}


def kafka(**settings: Any) -> KafkaSettings:
    return KafkaSettings.model_validate(settings)


def scram(**settings: Any) -> KafkaSettings:
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "username": "alice"}
    return kafka(**{**login, "password": "secret:env/PW", **settings})


def oauth(**settings: Any) -> KafkaSettings:
    return scram(sasl_mechanism="OAUTHBEARER", token_url="https://login/token", token_scope="kafka", **settings)


def test_without_security_there_is_an_address_and_nothing_secret() -> None:
    plain = {"bootstrap.servers": "a:1,b:2", "security.protocol": "PLAINTEXT"}
    settings = kafka(bootstrap_servers="a:1,b:2")
    assert (librdkafka_options(settings, {}).plain, librdkafka_options(settings, {}).secret) == (plain, {})
    assert java_options(settings, {}).reveal() == {f"kafka.{name}": value for name, value in plain.items()}


def test_a_login_for_librdkafka_has_the_password_apart() -> None:
    options = librdkafka_options(scram(), SECRETS)
    assert options.plain == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
    }
    assert options.secret == {"sasl.password": PLANTED}
    assert options.reveal() == {**options.plain, **options.secret}


def test_what_a_plan_says_of_secrets_is_found_whatever_they_hold() -> None:
    options = java_options(scram(truststore="t.p12", truststore_password="secret:env/KEY"), SECRETS)
    pattern = options.secrets_in_plans()
    assert pattern is not None
    # Python has another word for the end of a text
    found = re.compile(pattern.replace(r"\z", r"\Z"))
    shown = ", ".join(f"{name} -> {value}" for name, value in [*options.secret.items(), *options.plain.items()])
    plan = f"DataSource(kafka,HashMap(a -> b, {shown}),None), kafka, [key#1]"
    assert found.sub("*", plan) == "DataSource(kafka,HashMap(a -> b, *),None), kafka, [key#1]"
    assert found.sub("*", plan[: plan.index("required")]) == "DataSource(kafka,HashMap(a -> b, *"
    assert options.secret_names() == r"kafka\.sasl\.jaas\.config|kafka\.ssl\.truststore\.password"
    assert java_options(kafka(), {}).secrets_in_plans() is None


def test_a_token_for_librdkafka_comes_from_the_endpoint() -> None:
    options = librdkafka_options(oauth(), SECRETS)
    assert options.plain == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "alice",
        "sasl.oauthbearer.token.endpoint.url": "https://login/token",
        "sasl.oauthbearer.scope": "kafka",
    }
    assert options.secret == {"sasl.oauthbearer.client.secret": PLANTED}


@pytest.mark.parametrize("make", [librdkafka_options, java_options])
def test_no_secret_is_in_what_is_printed(make: Any) -> None:
    settings = scram(
        keystore="k.p12", keystore_password="secret:env/KEY", options={"ssl.key.password": "secret:env/KEY"}
    )
    options = make(settings, {"PW": "planted-1", "KEY": "planted-2"})
    assert "planted-1" in "".join(options.reveal().values())
    assert [text for text in (repr(options), str(options), repr(settings)) if "planted" in text] == []


def test_a_secret_that_is_not_there_is_named() -> None:
    with pytest.raises(SecretMissing, match="secret:env/PW"):
        librdkafka_options(scram(), {})
    with pytest.raises(SecretMissing, match="secret:env/PW"):
        java_options(scram(), {})


def test_secrets_are_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "password"
    settings = scram(password=f"secret:file/{file}")
    file.write_text("old\n")
    assert librdkafka_options(settings, {}).secret == {"sasl.password": "old"}
    file.write_text("new\n")
    assert librdkafka_options(settings, {}).secret == {"sasl.password": "new"}


@pytest.mark.parametrize(
    ("stores", "librdkafka", "java"),
    [
        (
            {"truststore": "/t/ca.pem"},
            {"ssl.ca.location": "/t/ca.pem"},
            {"ssl.truststore.location": "/t/ca.pem", "ssl.truststore.type": "PEM"},
        ),
        (
            {"keystore": "/t/own.PEM", "key_password": "secret:env/KEY"},
            {
                "ssl.certificate.location": "/t/own.PEM",
                "ssl.key.location": "/t/own.PEM",
                "ssl.key.password": "key-password",
            },
            {
                "ssl.keystore.location": "/t/own.PEM",
                "ssl.keystore.type": "PEM",
                "ssl.key.password": "key-password",
            },
        ),
        (
            {"keystore": "own.p12", "keystore_password": "secret:env/KEY"},
            {"ssl.keystore.location": "own.p12", "ssl.keystore.password": "key-password"},
            {
                "ssl.keystore.location": "own.p12",
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.password": "key-password",
            },
        ),
    ],
)
def test_stores_that_both_clients_read(
    stores: dict[str, str], librdkafka: dict[str, str], java: dict[str, str]
) -> None:
    settings = kafka(security_protocol="SSL", **stores)
    ssl = {"bootstrap.servers": "127.0.0.1:9092", "security.protocol": "SSL"}
    assert librdkafka_options(settings, SECRETS).reveal() == {**ssl, **librdkafka}
    assert java_options(settings, SECRETS).reveal() == {f"kafka.{k}": v for k, v in {**ssl, **java}.items()}


@pytest.mark.parametrize("ending", ["p12", "pfx", "jks"])
def test_librdkafka_gets_the_certificates_of_a_java_trust_store_as_pem(tmp_path: Path, ending: str) -> None:
    trust = Authority(tmp_path, "authority").trust
    store = trust.pkcs12.rename(tmp_path / f"trust.{ending}")
    settings = kafka(security_protocol="SSL", truststore=str(store), truststore_password="secret:env/STORE")
    options = librdkafka_options(settings, {"STORE": STORE_PASSWORD})
    assert options.plain["ssl.ca.pem"] == trust.pem.read_text(encoding="utf-8")
    assert options.secret == {}


@pytest.mark.parametrize(
    ("data", "password", "why"),
    [
        (bytes.fromhex("feedfeed00000002"), "x", "is in Java's own format (JKS), which librdkafka cannot read"),
        (b"", "x", "does not open: it is no PKCS#12 store, or has another password"),
        (None, "other", "does not open: it is no PKCS#12 store, or has another password"),
    ],
)
def test_a_trust_store_that_librdkafka_cannot_have_is_refused(
    tmp_path: Path, data: bytes | None, password: str, why: str
) -> None:
    store = Authority(tmp_path, "authority").trust.pkcs12
    if data is not None:
        store.write_bytes(data)
    settings = kafka(security_protocol="SSL", truststore=str(store), truststore_password="secret:env/STORE")
    with pytest.raises(SettingsInvalid) as failure:
        librdkafka_options(settings, {"STORE": password})
    assert failure.value.message == f"The trust store {store} {why}."
    # a task reads it by Java's client alone
    assert java_options(settings, {"STORE": password}).plain["kafka.security.protocol"] == "SSL"


def test_a_trust_store_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match=r"The trust store /nowhere/ca\.p12 cannot be read: No such file"):
        librdkafka_options(kafka(security_protocol="SSL", truststore="/nowhere/ca.p12"), {})


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a.pem", StoreType.PEM), ("/x/a.CRT", StoreType.PEM), ("a.b.pfx", StoreType.PKCS12), ("a.jks", StoreType.JKS)],
)
def test_the_ending_says_what_a_store_is(path: str, kind: StoreType) -> None:
    assert store_type(path) is kind


def test_a_store_without_a_known_ending_is_refused() -> None:
    with pytest.raises(SettingsInvalid, match=r"trust does not say.*\.pem, \.crt, \.p12, \.pfx, \.jks"):
        store_type("/x/trust")


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_a_pem_file_has_no_store_password_in_java(store: str) -> None:
    settings = kafka(security_protocol="SSL", **{store: "x.pem", f"{store}_password": "secret:env/PW"})
    with pytest.raises(SettingsInvalid, match=rf"kafka\.{store}_password is set, and the PEM file x\.pem"):
        java_options(settings, SECRETS)


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
def test_a_login_for_java_is_a_jaas_line(mechanism: str, module: str) -> None:
    options = java_options(scram(sasl_mechanism=mechanism, username='a"b'), {"PW": "p\\q"})
    assert options.plain["kafka.sasl.mechanism"] == mechanism
    assert options.secret == {
        "kafka.sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        r'username="a\"b" password="p\\q";'
    }


@pytest.mark.parametrize(("environ", "prefix"), [(SECRETS, "org."), (DATABRICKS, "kafkashaded.org.")])
def test_a_token_for_java_comes_from_a_class_that_its_client_has(environ: dict[str, str], prefix: str) -> None:
    options = java_options(oauth(), {**environ, "PW": "s"})
    security = f"{prefix}apache.kafka.common.security"
    handler = f"{security}.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    assert options.plain["kafka.sasl.login.callback.handler.class"] == handler
    assert options.plain["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://login/token"
    assert options.secret["kafka.sasl.jaas.config"] == (
        f'{security}.oauthbearer.OAuthBearerLoginModule required clientId="alice" clientSecret="s" scope="kafka";'
    )


def test_further_options_go_to_java_as_they_are_and_come_last() -> None:
    given = {"fetch.max.bytes": "1000", "sasl.mechanism": "GSSAPI", "ssl.key.password": "secret:env/KEY"}
    options = java_options(scram(options=given), SECRETS)
    assert options.plain["kafka.fetch.max.bytes"] == "1000"
    assert options.plain["kafka.sasl.mechanism"] == "GSSAPI"
    assert options.secret["kafka.ssl.key.password"] == "key-password"


def jaas_line(mechanism: str) -> KafkaSettings:
    options = {"sasl.jaas.config": "secret:env/LINE", "sasl.mechanism": mechanism}
    return kafka(security_protocol="SASL_SSL", options=options)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("password", [PLANTED, "simple", "a;b"])
def test_the_login_of_a_jaas_line_is_taken_for_librdkafka(mechanism: str, password: str) -> None:
    line = java_options(scram(sasl_mechanism=mechanism), {"PW": password}).secret["kafka.sasl.jaas.config"]
    settings = jaas_line(mechanism)
    assert java_options(settings, {"LINE": line}).secret == {"kafka.sasl.jaas.config": line}
    options = librdkafka_options(settings, {"LINE": line})
    assert options.secret == {"sasl.username": "alice", "sasl.password": password}
    assert options.plain["sasl.mechanism"] == mechanism


def test_a_jaas_line_may_quote_in_two_ways_and_not_at_all() -> None:
    line = """a.b.ScramLoginModule  required
        username = 'a "b' password=simple serviceName="x;y" ;
    """
    options = librdkafka_options(jaas_line("SCRAM-SHA-512"), {"LINE": line})
    assert options.secret == {"sasl.username": 'a "b', "sasl.password": "simple"}


@pytest.mark.parametrize(
    "line",
    [
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true username=planted password=planted;",
        "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "org.apache.kafka.common.security.plain.PlainLoginModule required username=planted;",
        "planted",
    ],
)
def test_a_line_without_user_and_password_is_refused_and_not_repeated(line: str) -> None:
    with pytest.raises(
        SettingsInvalid, match=r"cannot log in by the line of kafka\.options sasl\.jaas\.config"
    ) as error:
        librdkafka_options(jaas_line("GSSAPI"), {"LINE": line})
    assert "planted" not in f"{error.value!r} {error.value.fields}"
    assert error.value.remedy == "Set kafka.sasl_mechanism, kafka.username and kafka.password in its place."


def test_librdkafka_gets_only_options_that_it_knows() -> None:
    given = {
        "max.poll.records": "5",
        "fetch.max.bytes": "1000",
        "client.id": "me",
        "linger.ms": "5",
        "isolation.level": "read_committed",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert librdkafka_options(kafka(options=given), {}).plain == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "PLAINTEXT",
        "client.id": "me",
        "linger.ms": "5",
        "ssl.endpoint.identification.algorithm": "none",
    }


@pytest.mark.parametrize("settings", [scram(), scram(sasl_mechanism="PLAIN")])
def test_librdkafka_takes_the_options_of_a_login(settings: KafkaSettings) -> None:
    # a name or value that it does not know is an error of the constructor
    assert Producer({**librdkafka_options(settings, SECRETS).reveal(), "log_level": 0}) is not None


def test_librdkafka_takes_every_option_that_is_passed_on() -> None:
    given = {
        "batch.size": "1000",
        "broker.address.family": "v4",
        "client.dns.lookup": "use_all_dns_ips",
        "delivery.timeout.ms": "1000",
        "metadata.max.age.ms": "1000",
        "queue.buffering.max.kbytes": "1000",
        "reconnect.backoff.max.ms": "1000",
        "request.timeout.ms": "1000",
        "retry.backoff.max.ms": "1000",
        "sasl.oauthbearer.extensions": "a=b",
        "socket.connection.setup.timeout.ms": "1000",
        "topic.metadata.refresh.interval.ms": "1000",
    }
    options = librdkafka_options(kafka(options=given), {}).plain
    assert set(given) < set(options)
    assert AdminClient({**options, "log_level": 0}) is not None
