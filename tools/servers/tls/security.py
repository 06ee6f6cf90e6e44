"""Everything that secure servers and their clients need: certificates, accounts, a token endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tools.servers.listeners import Security
from tools.servers.registry import RegistrySecurity
from tools.servers.tls.certificates import Authority, KeyStore
from tools.servers.tls.identity import AUDIENCE, IdentityProvider

# admin may do everything, alice nothing until an ACL says so
PASSWORDS: Mapping[str, str] = {"admin": "admin-secret", "alice": "alice-secret"}


class Mechanism(Enum):
    """How a client of `Listener.SASL_SSL` says who it is."""

    SCRAM = "SCRAM-SHA-512"
    PLAIN = "PLAIN"
    BEARER = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class Secured:
    """The certificates and accounts of both sides of the secure listeners.

    Attributes:
        security: the broker's side, for `start_broker`.
        registry: the registry's side, for `start_registry`.
        authority: signed the certificates of the broker and of the clients.
        stranger: an authority that signed none of them.
        clients: a certificate for each account.
        identity: the token endpoint; its clients are the accounts.
    """

    security: Security
    registry: RegistrySecurity
    authority: Authority
    stranger: Authority
    clients: Mapping[str, KeyStore]
    identity: IdentityProvider

    def tls(self) -> dict[str, str]:
        """Return a confluent-kafka client's options for `Listener.SSL`."""
        return {"security.protocol": "SSL", "ssl.ca.location": str(self.authority.trust.pem)}

    def mutual_tls(self, account: str) -> dict[str, str]:
        """Return a confluent-kafka client's options for `Listener.MTLS`."""
        keys = self.clients[account]
        return {
            **self.tls(),
            "ssl.certificate.location": str(keys.certificate),
            "ssl.key.location": str(keys.key),
        }

    def sasl(self, mechanism: Mechanism, account: str) -> dict[str, str]:
        """Return a confluent-kafka client's options for `Listener.SASL_SSL`."""
        common = {**self.tls(), "security.protocol": "SASL_SSL", "sasl.mechanisms": mechanism.value}
        password = self.security.passwords[account]
        if mechanism is not Mechanism.BEARER:
            return {**common, "sasl.username": account, "sasl.password": password}
        return {
            **common,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": account,
            "sasl.oauthbearer.client.secret": password,
            "sasl.oauthbearer.token.endpoint.url": self.identity.token_url,
        }


@contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    """Make the certificates in the folder, and run the token endpoint while the block runs."""
    authority = Authority(folder / "authority", "test authority")
    with IdentityProvider(folder / "identity", PASSWORDS) as identity:
        server = authority.server()
        yield Secured(
            security=Security(
                key_store=server.pem,
                trust_store=authority.trust.pem,
                passwords=PASSWORDS,
                key_set=identity.key_set,
                issuer=identity.issuer,
                audience=AUDIENCE,
            ),
            registry=RegistrySecurity(
                keys=server,
                trust_store=authority.trust.pem,
                passwords=PASSWORDS,
                token_key=identity.public_key,
                issuer=identity.issuer,
                audience=AUDIENCE,
            ),
            authority=authority,
            stranger=Authority(folder / "stranger", "strange authority"),
            clients={account: authority.client(account) for account in PASSWORDS},
            identity=identity,
        )
