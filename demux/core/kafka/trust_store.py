"""The certificates of a Java trust store, for librdkafka, which reads PEM alone."""

from __future__ import annotations

from pathlib import Path

from demux.core.errors import SettingsInvalid

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
