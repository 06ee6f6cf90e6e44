"""The sentences about a registry over HTTP that does not answer as it should. Pure."""

from __future__ import annotations

from demux.core.errors import RegistryRefused, RegistryUnavailable
from demux.core.registry.confluent.responses import CertificateRefused, RegistryRejected, RegistryUnusable, clipped
from demux.core.settings.settings import RegistrySettings


def unavailable(url: str, unusable: RegistryUnusable) -> RegistryUnavailable:
    """Return the error when all tries came to nothing."""
    return RegistryUnavailable(
        f"The registry at {url} gave no usable answer: {unusable.what}.",
        "Run the same command again when it does; nothing is lost. For a slow registry, raise registry.timeout_s.",
        url=url,
        what=unusable.what,
    )


def not_let_in(settings: RegistrySettings, rejected: RegistryRejected) -> RegistryRefused:
    """Return the error of a 401 or 403."""
    said = clipped(rejected.message)
    who = "our token" if settings.token else f"the user {settings.username!r}" if settings.username else None
    if rejected.status == 403:
        cause = f"does not permit it to {who}" if who else "does not permit it without an account"
        remedy = "Grant the permission, or use another account."
    else:
        cause = f"does not accept {who}" if who else "wants an account"
        remedy = "Correct registry.username and registry.password, or registry.token."
    return RegistryRefused(
        f"The registry at {settings.url} {cause}: {said}.", remedy, url=settings.url, status=rejected.status
    )


def not_trusted(url: str, distrusted: CertificateRefused) -> RegistryRefused:
    """Return the error of a certificate that one side does not accept."""
    if distrusted.ours:
        return RegistryRefused(
            f"The registry at {url} does not accept our certificate: {distrusted.reason}.",
            "Set registry.certificate_file and registry.key_file to a certificate that it trusts.",
            url=url,
        )
    return RegistryRefused(
        f"We do not trust the certificate of the registry at {url}: {distrusted.reason}.",
        "Set registry.ca_file to the authority that signed it, and registry.url to a host that it names.",
        url=url,
    )


def not_expected(url: str, rejected: RegistryRejected) -> RegistryRefused | RegistryUnavailable:
    """Return the error of a no where a registry that works says none, or of an answer that is not a registry's."""
    said = clipped(rejected.message)
    if rejected.code is not None:
        return RegistryRefused(
            f"The registry at {url} refuses the request: {said}.",
            "Change what it complains about there, then run again.",
            url=url,
            status=rejected.status,
        )
    return RegistryUnavailable(
        f"What answers at {url} does not speak as a schema registry does: {said}.",
        "Correct registry.url; the path behind the host belongs to it.",
        url=url,
        status=rejected.status,
    )
