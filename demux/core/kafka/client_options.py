"""Our Kafka settings as the options of the two clients: librdkafka in this process, Java's under Spark.

Resolves secrets, which are kept apart from the rest and out of every `repr`, and reads Java's trust stores; apart from
that, pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath

from demux.core.errors import SettingsInvalid
from demux.core.secrets import is_reference, is_secret_option, resolve
from demux.core.settings.source import KafkaSettings, SaslMechanism

_LOGIN = "org.apache.kafka.common.security"
_LINE = "sasl.jaas.config"
_LOGIN_LINE = re.compile(r"[\w.]*\.(?:Plain|Scram)LoginModule\s+\w+\s(.*);", re.DOTALL)
_LOGIN_VALUE = re.compile(r"""(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r"}
# librdkafka stops at a name that it does not know, and `kafka.options` is made for Java's consumer: these it knows
_LIBRDKAFKA_NAMES = """
    batch.num.messages batch.size broker.address.family broker.address.ttl client.dns.lookup client.id client.rack
    compression.level connections.max.idle.ms delivery.timeout.ms enable.metrics.push
    enable.ssl.certificate.verification https.ca.location linger.ms max.in.flight.requests.per.connection
    message.copy.max.bytes message.max.bytes message.timeout.ms metadata.max.age.ms queue.buffering.max.kbytes
    queue.buffering.max.messages receive.message.max.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.kerberos.keytab sasl.kerberos.principal
    sasl.kerberos.service.name sasl.mechanism sasl.mechanisms sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret sasl.oauthbearer.extensions sasl.oauthbearer.method sasl.oauthbearer.scope
    sasl.oauthbearer.token.endpoint.url sasl.password sasl.username security.protocol socket.connection.setup.timeout.ms
    socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes
    socket.timeout.ms ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites
    ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.key.location ssl.key.password ssl.key.pem
    ssl.providers ssl.sigalgs.list topic.metadata.refresh.interval.ms
"""


class StoreType(Enum):
    """How certificates and keys are laid out in a file; the values are Java's own."""

    PEM = "PEM"
    PKCS12 = "PKCS12"
    JKS = "JKS"


_ENDINGS: Mapping[str, StoreType] = {
    ".pem": StoreType.PEM,
    ".crt": StoreType.PEM,
    ".p12": StoreType.PKCS12,
    ".pfx": StoreType.PKCS12,
    ".jks": StoreType.JKS,
}


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Options of a Kafka client, for this moment only; never store or log what `reveal` returns."""

    plain: Mapping[str, str]
    secret: Mapping[str, str] = field(repr=False)

    def reveal(self) -> dict[str, str]:
        """Return all of them."""
        return {**self.plain, **self.secret}

    def secret_names(self) -> str | None:
        """Return a Java regular expression of the names of the secret options; None when there are none."""
        # Java takes these escapes too
        return "|".join(re.escape(name) for name in sorted(self.secret)) or None

    def secrets_in_plans(self) -> str | None:
        """Return a Java regular expression of what Spark's plans say of the secret options, and of those after them.

        A value may have anything in it, so the end of all options is the only end that is sure.
        """
        names = self.secret_names()
        return names and rf"(?s)(?:{names}) -> .*?(?=\),None\)|\z)"


def librdkafka_options(kafka: KafkaSettings, environ: Mapping[str, str]) -> ClientOptions:
    """Return the options of a librdkafka client; those of `kafka.options` that it does not know are left out.

    Raises:
        SettingsInvalid: the settings need something that librdkafka cannot do.
        SecretMissing: a secret is not there.
    """
    found: dict[str, str | None] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": kafka.security_protocol.value,
        **_librdkafka_stores(kafka, environ),
        **_librdkafka_login(kafka),
    }
    known = _LIBRDKAFKA_NAMES.split()
    for name, value in kafka.options.items():
        if name in known:
            # Java's word for "do not compare the host with the certificate" is no word
            found[name] = value or ("none" if name == "ssl.endpoint.identification.algorithm" else value)
    options = _options(found, environ)
    if _LINE not in kafka.options:
        return options
    # a mechanism is enough for Java, whose line has the login
    plain = {name: value for name, value in options.plain.items() if name != "sasl.username"}
    return ClientOptions(plain, {**options.secret, **_login_in(resolve(kafka.options[_LINE], environ))})


def java_options(kafka: KafkaSettings, environ: Mapping[str, str]) -> ClientOptions:
    """Return the options of Spark's Kafka source, each name with the prefix `kafka.`.

    Args:
        environ: the environment, for secrets, and to see that Databricks keeps the client's classes elsewhere.

    Raises:
        SettingsInvalid: a store's file name does not say its type, or a PEM file is given a store password.
        SecretMissing: a secret is not there.
    """
    package = ("kafkashaded." if "DATABRICKS_RUNTIME_VERSION" in environ else "") + _LOGIN
    found: dict[str, str | None] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": kafka.security_protocol.value,
        **_java_stores(kafka),
        **_java_login(kafka, package),
        **kafka.options,
    }
    options = _options(found, environ)
    secret = dict(options.secret)
    if kafka.sasl_mechanism is not None and _LINE not in kafka.options:
        secret[_LINE] = _jaas(kafka, package, environ)
    return ClientOptions(
        {f"kafka.{name}": value for name, value in options.plain.items()},
        {f"kafka.{name}": value for name, value in secret.items()},
    )


def store_type(path: str) -> StoreType:
    """Return the type of a trust or key store, by the ending of its name.

    Raises:
        SettingsInvalid: the ending says nothing.
    """
    found = _ENDINGS.get(PurePosixPath(path).suffix.lower())
    if found is None:
        raise SettingsInvalid(
            f"The name of {path} does not say what kind of store it is.",
            f"Name it with one of the endings {', '.join(_ENDINGS)}.",
            path=path,
        )
    return found


def _options(found: Mapping[str, str | None], environ: Mapping[str, str]) -> ClientOptions:
    given = {name: value for name, value in found.items() if value is not None}
    hidden = {name for name, value in given.items() if is_reference(value) or is_secret_option(name)}
    return ClientOptions(
        {name: value for name, value in given.items() if name not in hidden},
        {name: resolve(given[name], environ) if is_reference(given[name]) else given[name] for name in sorted(hidden)},
    )


def _librdkafka_stores(kafka: KafkaSettings, environ: Mapping[str, str]) -> Mapping[str, str | None]:
    found: dict[str, str | None] = {}
    match kafka.truststore and store_type(kafka.truststore):
        case StoreType.PEM:
            found["ssl.ca.location"] = kafka.truststore
        case StoreType():
            password = kafka.truststore_password and resolve(kafka.truststore_password, environ)
            found["ssl.ca.pem"] = trusted_certificates(str(kafka.truststore), password)
    match kafka.keystore and store_type(kafka.keystore):
        case StoreType.PEM:
            found["ssl.certificate.location"] = found["ssl.key.location"] = kafka.keystore
            found["ssl.key.password"] = kafka.key_password
        case StoreType():
            # one in Java's own format is refused by the client
            found["ssl.keystore.location"] = kafka.keystore
            found["ssl.keystore.password"] = kafka.keystore_password
    return found


def _librdkafka_login(kafka: KafkaSettings) -> Mapping[str, str | None]:
    match kafka.sasl_mechanism:
        case None:
            return {}
        case SaslMechanism.OAUTHBEARER:
            return {
                "sasl.mechanism": kafka.sasl_mechanism.value,
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": kafka.username,
                "sasl.oauthbearer.client.secret": kafka.password,
                "sasl.oauthbearer.token.endpoint.url": kafka.token_url,
                "sasl.oauthbearer.scope": kafka.token_scope,
            }
        case _:
            return {
                "sasl.mechanism": kafka.sasl_mechanism.value,
                "sasl.username": kafka.username,
                "sasl.password": kafka.password,
            }


def _java_stores(kafka: KafkaSettings) -> Mapping[str, str | None]:
    found: dict[str, str | None] = {}
    stores = {
        "truststore": (kafka.truststore, kafka.truststore_password),
        "keystore": (kafka.keystore, kafka.keystore_password),
    }
    for name, (path, password) in stores.items():
        if path is None:
            continue
        kind = store_type(path)
        if kind is StoreType.PEM and password is not None:
            raise SettingsInvalid(
                f"kafka.{name}_password is set, and the PEM file {path} has no password of its own.",
                "Remove it; the password of an encrypted key goes under kafka.key_password.",
                path=path,
            )
        found |= {f"ssl.{name}.location": path, f"ssl.{name}.type": kind.value, f"ssl.{name}.password": password}
    return {**found, "ssl.key.password": kafka.key_password}


def _java_login(kafka: KafkaSettings, package: str) -> Mapping[str, str | None]:
    found: dict[str, str | None] = {"sasl.mechanism": kafka.sasl_mechanism and kafka.sasl_mechanism.value}
    if kafka.sasl_mechanism is SaslMechanism.OAUTHBEARER:
        # where every client from 3.1 to 3.9 has it, those of all Sparks here; `kafka.options` may name another class
        handler = f"{package}.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
        found["sasl.login.callback.handler.class"] = handler
        found["sasl.oauthbearer.token.endpoint.url"] = kafka.token_url
    return found


def _jaas(kafka: KafkaSettings, package: str, environ: Mapping[str, str]) -> str:
    password = kafka.password and resolve(kafka.password, environ)
    match kafka.sasl_mechanism:
        case SaslMechanism.OAUTHBEARER:
            module = "oauthbearer.OAuthBearerLoginModule"
            values = {"clientId": kafka.username, "clientSecret": password, "scope": kafka.token_scope}
        case SaslMechanism.PLAIN:
            module, values = "plain.PlainLoginModule", {"username": kafka.username, "password": password}
        case _:
            module, values = "scram.ScramLoginModule", {"username": kafka.username, "password": password}
    parts = [f"{name}={_quoted(value)}" for name, value in values.items() if value is not None]
    return f"{package}.{module} required {' '.join(parts)};"


def _quoted(text: str) -> str:
    # read by java.io.StreamTokenizer: a quote or a line end closes the string, a backslash escapes
    for character, escaped in (("\\", r"\\"), ('"', r"\""), ("\n", r"\n"), ("\r", r"\r")):
        text = text.replace(character, escaped)
    return f'"{text}"'


def _login_in(line: str) -> Mapping[str, str]:
    """Return the login that a line for Java has.

    Raises:
        SettingsInvalid: it is another module's than those of users with passwords.
    """
    found = _LOGIN_LINE.fullmatch(line.strip())
    values = {} if found is None else {name: _unquoted(value) for name, value in _LOGIN_VALUE.findall(found[1])}
    if not {"username", "password"} <= set(values):
        raise SettingsInvalid(
            "librdkafka, which asks the broker about its topics, cannot log in by the line of kafka.options "
            f"{_LINE}: it reads username and password of PlainLoginModule and ScramLoginModule.",
            "Set kafka.sasl_mechanism, kafka.username and kafka.password in its place.",
        )
    return {"sasl.username": values["username"], "sasl.password": values["password"]}


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), text[1:-1]) if text[0] in "\"'" else text


# the first bytes of a store in Java's own format, which `keytool` wrote before Java 9
_JKS = bytes.fromhex("feedfeed")


def trusted_certificates(path: str, password: str | None) -> str:
    """Return the certificates of a PKCS#12 trust store as PEM; its name may end in `.jks`.

    Raises:
        SettingsInvalid: the file cannot be read, is in Java's own format, has no certificate, or has another password.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SettingsInvalid(
            f"The trust store {path} cannot be read: {error.strerror or error}.",
            "Correct kafka.truststore.",
            path=path,
        ) from None
    if data.startswith(_JKS):
        raise SettingsInvalid(
            f"The trust store {path} is in Java's own format (JKS), which librdkafka cannot read.",
            "Make a PKCS#12 store of it: keytool -importkeystore -srckeystore OLD -destkeystore NEW.p12 -deststoretype "
            "PKCS12; Spark's client reads that too.",
            path=path,
        )
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise SettingsInvalid(
            f"The trust store {path} does not open: it is no PKCS#12 store, or has another password.",
            "Correct kafka.truststore and the secret behind kafka.truststore_password.",
            path=path,
        ) from None
    certificates = [one.certificate for one in (found.cert, *found.additional_certs) if one is not None]
    if not certificates:
        raise SettingsInvalid(
            f"The trust store {path} has no certificate.",
            "Name a store with the certificate of the authority that signed the broker's.",
            path=path,
        )
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)
