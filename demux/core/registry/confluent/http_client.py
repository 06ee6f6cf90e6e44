"""A registry's requests: our account and certificates, answers of the expected shape or our errors."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import TypeAdapter

from demux.core.errors import DemuxError, RegistryRefused, RegistryUnavailable, SettingsInvalid
from demux.core.http.client import Certificates, HttpClient, Tries
from demux.core.http.failures import CertificateRefused, HttpRejected, HttpUnusable, one_line, parse_json
from demux.core.secrets import resolve
from demux.core.settings.settings import RegistrySettings

T = TypeVar("T")

_JSON = "application/vnd.schemaregistry.v1+json"


class Rest:
    """The registry under one URL. Safe to share between threads."""

    def __init__(
        self, settings: RegistrySettings, environ: Mapping[str, str], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Prepare; resolves the secrets, reads the certificates, makes no request.

        Raises:
            SecretMissing: a secret is not there.
            SettingsInvalid: there is no URL, or a certificate file cannot be used.
        """
        if settings.url is None:
            raise SettingsInvalid("registry.url is not set.", "Set it.")
        self.url = settings.url
        self._settings = settings
        password = resolve(settings.password, environ) if settings.password else ""
        token = resolve(settings.token, environ) if settings.token else ""
        if re.search(r"[^\x21-\x7e]", token):
            raise SettingsInvalid(
                f"The secret {settings.token} is no token: it has blanks or characters beyond ASCII.",
                "Put the token there, and nothing else.",
                reference=settings.token,
            )
        login = base64.b64encode(f"{settings.username}:{password}".encode()).decode()
        account = f"Bearer {token}" if token else f"Basic {login}" if settings.username else None
        header = {"Authorization": account} if account else {}
        timeout_s = settings.timeout_s
        self._client = HttpClient(
            self.url,
            lambda: header,
            Tries(settings.retries, timeout_s, settings.retries * timeout_s, timeout_s),
            certificates=_certificates(settings),
            secrets=[secret for secret in (password, token, login if password else "") if secret],
            sleep=sleep,
        )

    def ask(
        self,
        method: str,
        path: str,
        shape: TypeAdapter[T],
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> T:
        """Return the answer to a request; requests are such that twice is as good as once.

        Raises:
            HttpRejected: the registry says no; only what `RegistryRefused` does not cover.
            RegistryRefused: wrong account, permission or certificate.
            RegistryUnavailable: no usable answer, however often it was asked.
        """
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": f"{_JSON}, application/json", **({"Content-Type": _JSON} if content else {})}

        def once() -> T:
            answer = self._client.send(method, path, query=query, content=content, headers=headers)
            return shape.validate_python(parse_json(answer.content))

        error: DemuxError | HttpRejected
        try:
            return self._client.try_again(once)
        except HttpUnusable as unusable:
            error = self._unavailable(unusable)
        except CertificateRefused as distrusted:
            error = self._not_trusted(distrusted)
        except HttpRejected as rejected:
            error = self._not_let_in(rejected) if rejected.status in (401, 403) else rejected
        raise error

    def unexpected(self, rejected: HttpRejected) -> DemuxError:
        """Return the error of a no that the caller has no other words for."""
        about: dict[str, object] = {"url": self.url, "status": rejected.status}
        if rejected.code is not None:
            return RegistryRefused(
                f"The registry at {self.url} refuses the request: {rejected.message}.",
                "Change what it complains about there, then run again.",
                **about,
            )
        return RegistryUnavailable(
            f"What answers at {self.url} does not speak as a schema registry does: {rejected.message}.",
            "Correct registry.url; the path behind the host belongs to it.",
            **about,
        )

    def _unavailable(self, unusable: HttpUnusable) -> RegistryUnavailable:
        asks = f", and asks to wait {unusable.after_s:,.0f} s" if unusable.after_s else ""
        what = f"{unusable.what}{asks}"
        return RegistryUnavailable(
            f"The registry at {self.url} gave no usable answer: it {what}.",
            "Run the same command again when it does; nothing is lost. For a slow registry, raise registry.timeout_s.",
            url=self.url,
            what=what,
        )

    def _not_let_in(self, rejected: HttpRejected) -> RegistryRefused:
        token, user = self._settings.token, self._settings.username
        who = "our token" if token else f"the user {user!r}" if user else None
        if rejected.status == 403:
            refusal = f"does not permit it to {who}" if who else "does not permit it without an account"
            remedy = "Grant the permission, or use another account."
        else:
            refusal = f"does not accept {who}" if who else "wants an account"
            remedy = "Correct registry.username and registry.password, or registry.token."
        return RegistryRefused(
            f"The registry at {self.url} {refusal}: {rejected.message}.", remedy, url=self.url, status=rejected.status
        )

    def _not_trusted(self, distrusted: CertificateRefused) -> RegistryRefused:
        if distrusted.ours:
            return RegistryRefused(
                f"The registry at {self.url} does not accept our certificate: {distrusted.reason}.",
                "Set registry.certificate_file and registry.key_file to a certificate that it trusts.",
                url=self.url,
            )
        return RegistryRefused(
            f"We do not trust the certificate of the registry at {self.url}: {distrusted.reason}.",
            "Set registry.ca_file to the authority that signed it, and registry.url to a host that it names.",
            url=self.url,
        )


def _certificates(settings: RegistrySettings) -> Certificates:
    """Return our certificate files, after each was read once.

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
        return Certificates(ca_file, certificate, key)
    files = ", ".join(path for path in (ca_file, certificate, key) if path is not None)
    raise SettingsInvalid(
        f"The registry's certificate files cannot be used ({files}): {one_line(reason)}.",
        "Correct registry.ca_file, registry.certificate_file and registry.key_file.",
        files=files,
    )
