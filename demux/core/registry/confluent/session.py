"""The HTTP session to one registry: our account, our certificates, and the reason when TLS is refused."""

from __future__ import annotations

import ssl
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from demux.core.errors import SettingsInvalid
from demux.core.registry.confluent.responses import clipped
from demux.core.settings.settings import RegistrySettings

Certificate = str | tuple[str, str] | None


def open_session(authorization: str | None) -> requests.Session:
    """Return a session that sends this header `Authorization`, or none; it makes no request."""
    session = requests.Session()
    session.auth = _RegistryAuth(authorization)
    session.mount("https://", _Adapter())
    return session


def client_certificate(settings: RegistrySettings) -> Certificate:
    """Return our certificate as requests takes it; reads all certificate files.

    Raises:
        SettingsInvalid: one of the files cannot be used.
    """
    ca_file, certificate, key = settings.ca_file, settings.certificate_file, settings.key_file
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        # an SSLError's own text is OpenSSL's, and names no file
        reason = "not PEM" if isinstance(error, ssl.SSLError) else error.strerror or "not PEM"
    else:
        return (certificate, key) if certificate and key else certificate
    files = ", ".join(path for path in (ca_file, certificate, key) if path is not None)
    raise SettingsInvalid(
        f"The registry's certificate files cannot be used ({files}): {clipped(reason)}.",
        "Correct registry.ca_file, registry.certificate_file and registry.key_file.",
        files=files,
    )


class _RegistryAuth(AuthBase):
    """Sets the account of each request; without one it keeps requests from looking for one in ~/.netrc."""

    def __init__(self, authorization: str | None) -> None:
        self._authorization = authorization

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._authorization is not None:
            request.headers["Authorization"] = self._authorization
        return request


class _RegistryConnection(HTTPSConnection):
    def send(self, data: Any) -> None:
        try:
            super().send(data)
        except ssl.SSLError:
            # a server that refuses our certificate closes the connection before we write; its alert is still unread
            if self.sock is not None:
                self.sock.recv(1)
            raise


class _Pool(HTTPSConnectionPool):
    ConnectionCls = _RegistryConnection


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": HTTPConnectionPool, "https": _Pool}
