"""Throw-away certificates: an authority, and what it signs, in every form that clients and brokers read."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# of every store here
STORE_PASSWORD = "changeit"
_LIFE = timedelta(days=365)
# clocks differ
_EARLIER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The authority's certificate: PEM, and PKCS#12 with the password `STORE_PASSWORD`."""

    pem: Path
    pkcs12: Path


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A certificate and its private key.

    Attributes:
        certificate: the certificate and the authority's, PEM.
        key: the private key, PKCS#8 PEM, not encrypted.
        pem: all of them in one file, as Kafka's PEM key stores are.
        pkcs12: all of them; the password is `STORE_PASSWORD`.
    """

    certificate: Path
    key: Path
    pem: Path
    pkcs12: Path


class Authority:
    """A certificate authority that nobody else trusts.

    Attributes:
        trust: what its clients need to trust it.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Make it, with its trust stores in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key(), self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.trust = self._trust_store()

    def server(self) -> KeyStore:
        """Return a certificate for localhost and 127.0.0.1."""
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return self._key_store("localhost", ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, name: str) -> KeyStore:
        """Return a certificate that says the holder is `CN=name`."""
        return self._key_store(name, ExtendedKeyUsageOID.CLIENT_AUTH, [x509.DNSName(name)])

    def _trust_store(self) -> TrustStore:
        store = TrustStore(self._folder / "authority.pem", self._folder / "authority.p12")
        store.pem.write_bytes(self._certificate.public_bytes(Encoding.PEM))
        # Java finds an authority in PKCS#12 only by an attribute of its own
        trusted = pkcs12.PKCS12Certificate(self._certificate, b"authority")
        store.pkcs12.write_bytes(pkcs12.serialize_java_truststore([trusted], _encryption()))
        return store

    def _key_store(self, name: str, purpose: x509.ObjectIdentifier, names: Sequence[x509.GeneralName]) -> KeyStore:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_named(name), self._name, key.public_key(), self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        store = KeyStore(*(self._folder / f"{name}.{form}" for form in ("crt", "key", "pem", "p12")))
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = certificate.public_bytes(Encoding.PEM) + self._certificate.public_bytes(Encoding.PEM)
        store.certificate.write_bytes(chain)
        store.key.write_bytes(secret)
        store.pem.write_bytes(secret + chain)
        store.pkcs12.write_bytes(
            pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [self._certificate], _encryption())
        )
        return store


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, signer: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _encryption() -> KeySerializationEncryption:
    return BestAvailableEncryption(STORE_PASSWORD.encode("ascii"))
