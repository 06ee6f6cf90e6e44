"""A broker's listeners, and what each needs in its properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Listener(Enum):
    """The doors of a broker, by their Kafka names; `MTLS` is SSL that asks for the client's certificate."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    MTLS = "MTLS"
    SASL_SSL = "SASL_SSL"

    @property
    def protocol(self) -> str:
        """Kafka's name of its security protocol."""
        return "SSL" if self is Listener.MTLS else self.value


SECURE = (Listener.SSL, Listener.MTLS, Listener.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Security:
    """The checks of a broker's secure listeners.

    Attributes:
        key_store: the broker's certificate and private key, PEM.
        trust_store: the authority that clients' certificates must come from, PEM.
        passwords: the password of each account, for SCRAM-SHA-512 and PLAIN.
        key_set: a file URL of the keys that tokens are signed with (JWKS).
        issuer: what tokens must name as their issuer.
        audience: what tokens must name as their audience.
    """

    key_store: Path
    trust_store: Path
    passwords: Mapping[str, str]
    key_set: str
    issuer: str
    audience: str


# everybody on the plain listener may do everything: that is how tests make topics, accounts and ACLs
SUPER_USERS = ("ANONYMOUS", "admin")


def security_properties(security: Security) -> dict[str, str]:
    """Return the broker properties of the secure listeners, and of the authorizer behind all of them."""
    sasl = "listener.name.sasl_ssl"
    bearer = f"{sasl}.oauthbearer.sasl"
    modules = "org.apache.kafka.common.security"
    accounts = " ".join(f'user_{name}="{password}"' for name, password in security.passwords.items())
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(security.key_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(security.trust_store),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        f"{sasl}.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
        f"{sasl}.scram-sha-512.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
        f"{sasl}.plain.sasl.jaas.config": f"{modules}.plain.PlainLoginModule required {accounts};",
        f"{bearer}.jaas.config": f"{modules}.oauthbearer.OAuthBearerLoginModule required;",
        f"{bearer}.server.callback.handler.class": f"{modules}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        # the default validator verifies no signature when the key set is under the listener's prefix
        "sasl.oauthbearer.jwt.validator.class": f"{modules}.oauthbearer.BrokerJwtValidator",
        "sasl.oauthbearer.jwks.endpoint.url": security.key_set,
        "sasl.oauthbearer.expected.issuer": security.issuer,
        "sasl.oauthbearer.expected.audience": security.audience,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in SUPER_USERS),
        "allow.everyone.if.no.acl.found": "false",
    }
