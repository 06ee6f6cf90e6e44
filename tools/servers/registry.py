"""A Confluent-compatible schema registry (Apicurio) on 127.0.0.1; what it knows is in memory and ends with it."""

from __future__ import annotations

import base64
import os
import ssl
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from demux.core.root.layout import cache_folder
from tools.servers.java import JAVA, SHORT_LIVED
from tools.servers.packages import REGISTRY, installed
from tools.servers.ports import HOST, free_ports
from tools.servers.process import Launch, Life, Server
from tools.servers.tls.certificates import KeyStore

# the part of its API that speaks as Confluent's does
API = "/apis/ccompat/v7"


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """The options of one registry.

    Attributes:
        port: where it listens; a free one is chosen if none is named.
        life: what happens to it when the starting process ends.
    """

    port: int | None = None
    heap_mb: int = 384
    java_options: Sequence[str] = SHORT_LIVED
    life: Life = Life.WITH_STARTER
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegistrySecurity:
    """The checks of a registry that answers by HTTPS only, and only with an account.

    Attributes:
        trust_store: the authority that signed it, PEM.
        passwords: the password of each account, for basic authentication; names in lower case.
        token_key: the public key that bearer tokens are verified with, base64 of DER.
        issuer: what tokens must name as their issuer.
        audience: what tokens must name as their audience.
    """

    keys: KeyStore
    trust_store: Path
    passwords: Mapping[str, str]
    token_key: str
    issuer: str
    audience: str


class Registry(Server):
    """A registry; started again, it is empty.

    Attributes:
        url: the Confluent-compatible API.
    """

    start_s = 90.0

    def __init__(self, launch: Launch, url: str, security: RegistrySecurity | None) -> None:
        self._security = security
        self.url = url
        super().__init__(launch)

    def _probe(self) -> Callable[[], bool]:
        opener, request = _question(self.url, self._security)
        return lambda: _answers(opener, request)


def start_registry(
    folder: Path, settings: RegistrySettings | None = None, security: RegistrySecurity | None = None
) -> Registry:
    """Return a registry that answers and knows nothing, with its log in the folder.

    Fetches Apicurio the first time.

    Args:
        settings: what differs from a small registry for a test.
        security: answers by HTTPS only, and to accounts only.

    Raises:
        PackagesUnavailable: Apicurio could not be fetched.
        PortTaken: another process listens on its port.
        ServerFailed: the registry did not start; with the end of its log.
    """
    settings = settings or RegistrySettings()
    files = installed(REGISTRY, cache_folder(os.environ))
    port = settings.port or free_ports(1)[0]
    folder.mkdir(parents=True, exist_ok=True)
    words = [JAVA, f"-Xmx{settings.heap_mb}m", *settings.java_options, "-jar", str(files / "quarkus-run.jar")]
    environment = {
        "QUARKUS_HTTP_HOST": HOST,
        "QUARKUS_HTTP_PORT": str(port),
        # health and metrics have a port of their own; any
        "QUARKUS_MANAGEMENT_HOST": HOST,
        "QUARKUS_MANAGEMENT_PORT": "0",
        **(_guarded(security, port) if security else {}),
        **settings.environment,
    }
    launch = Launch("schema registry", words, folder, folder / "registry.log", environment, (port,), settings.life)
    return Registry(launch, f"{'https' if security else 'http'}://{HOST}:{port}{API}", security)


def _guarded(security: RegistrySecurity, port: int) -> dict[str, str]:
    users = "QUARKUS_SECURITY_USERS_EMBEDDED"
    return {
        "QUARKUS_HTTP_INSECURE_REQUESTS": "disabled",
        "QUARKUS_HTTP_SSL_PORT": str(port),
        "QUARKUS_HTTP_SSL_CERTIFICATE_FILES": str(security.keys.certificate),
        "QUARKUS_HTTP_SSL_CERTIFICATE_KEY_FILES": str(security.keys.key),
        "QUARKUS_HTTP_AUTH_PERMISSION_ALL_PATHS": "/apis/*",
        "QUARKUS_HTTP_AUTH_PERMISSION_ALL_POLICY": "authenticated",
        "QUARKUS_HTTP_AUTH_BASIC": "true",
        f"{users}_PLAIN_TEXT": "true",
        **{f"{users}_USERS_{name.upper()}": password for name, password in security.passwords.items()},
        "QUARKUS_OIDC_TENANT_ENABLED": "true",
        "QUARKUS_OIDC_CLIENT_ID": "registry",
        "QUARKUS_OIDC_PUBLIC_KEY": security.token_key,
        "QUARKUS_OIDC_TOKEN_ISSUER": security.issuer,
        "QUARKUS_OIDC_TOKEN_AUDIENCE": security.audience,
    }


def _question(
    url: str, security: RegistrySecurity | None
) -> tuple[urllib.request.OpenerDirector, urllib.request.Request]:
    """A request that only a registry which is up answers with 200."""
    request = urllib.request.Request(f"{url}/subjects")
    trusted = ssl.create_default_context(cafile=security.trust_store if security else None)
    if security:
        name, password = next(iter(security.passwords.items()))
        pair = base64.b64encode(f"{name}:{password}".encode()).decode("ascii")
        request.add_header("Authorization", f"Basic {pair}")
    # a proxy of the environment is not for this machine
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted))
    return urllib.request.build_opener(*handlers), request


def _answers(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> bool:
    try:
        with opener.open(request, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):
        return False
