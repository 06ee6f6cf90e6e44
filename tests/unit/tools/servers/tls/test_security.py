from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest
from joserfc import jwt
from joserfc.errors import BadSignatureError
from joserfc.jwk import KeySet

from tools.servers.tls.certificates import Authority, KeyStore, TrustStore
from tools.servers.tls.identity import IdentityProvider
from tools.servers.tls.security import secured


def handshake(server: KeyStore, trust: TrustStore, host: str) -> None:
    """A handshake in memory, as a client that checks the name does it."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(server.certificate, server.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        serving.wrap_bio(to_server, to_client, server_side=True),
        ssl.create_default_context(cafile=str(trust.pem)).wrap_bio(to_client, to_server, server_hostname=host),
    ]
    while ends:
        for end in ends[::-1]:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


class TestCertificates:
    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
    def test_the_server_is_trusted_under_both_names(self, tmp_path: Path, host: str) -> None:
        authority = Authority(tmp_path, "ours")
        handshake(authority.server(), authority.trust, host)

    def test_another_name_is_refused(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path, "ours")
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            handshake(authority.server(), authority.trust, "example.org")

    def test_another_authority_is_refused(self, tmp_path: Path) -> None:
        stranger = Authority(tmp_path / "theirs", "theirs")
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(Authority(tmp_path / "ours", "ours").server(), stranger.trust, "localhost")

    def test_every_form_is_written_below_the_folder(self, tmp_path: Path) -> None:
        with secured(tmp_path) as made:
            alice = made.clients["alice"]
            forms = [made.authority.trust.pem, made.authority.trust.pkcs12, alice.pem, alice.pkcs12, alice.key]
            assert [form.stat().st_size > 0 and form.is_relative_to(tmp_path) for form in forms] == [True] * 5


@pytest.fixture
def identity(tmp_path: Path) -> Iterator[IdentityProvider]:
    with IdentityProvider(tmp_path, {"alice": "a:b c"}) as identity:
        yield identity


def ask(identity: IdentityProvider, form: dict[str, str], basic: str | None = None) -> tuple[int, dict[str, object]]:
    """The status and the body of the endpoint's answer."""
    headers = {"Authorization": f"Basic {b64encode(basic.encode()).decode()}"} if basic else {}
    body = urllib.parse.urlencode({"grant_type": "client_credentials", **form}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(identity.token_url, body, headers)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


class TestIdentityProvider:
    def test_a_client_gets_a_token_that_the_key_set_verifies(self, identity: IdentityProvider, tmp_path: Path) -> None:
        status, body = ask(identity, {"client_id": "alice", "client_secret": "a:b c"})
        keys = KeySet.import_key_set(json.loads((tmp_path / "keys.json").read_text()))
        claims = jwt.decode(str(body["access_token"]), keys).claims
        assert status == 200
        assert {name: claims[name] for name in ("iss", "aud", "sub")} == {
            "iss": identity.issuer,
            "aud": "servers",
            "sub": "alice",
        }
        assert claims["exp"] - claims["iat"] == 3600 == body["expires_in"]

    def test_the_key_set_refuses_what_another_provider_signed(self, identity: IdentityProvider, tmp_path: Path) -> None:
        with IdentityProvider(tmp_path / "other", {}) as other:
            keys = KeySet.import_key_set(json.loads((tmp_path / "keys.json").read_text()))
            with pytest.raises(BadSignatureError):
                jwt.decode(other.token("alice"), keys)

    def test_the_secret_may_come_percent_encoded_in_the_header(self, identity: IdentityProvider) -> None:
        assert ask(identity, {}, basic="alice:a%3Ab+c")[0] == 200

    @pytest.mark.parametrize(
        ("form", "expected"),
        [
            ({"client_id": "alice", "client_secret": "wrong"}, (401, {"error": "invalid_client"})),
            ({"client_id": "nobody", "client_secret": ""}, (401, {"error": "invalid_client"})),
            ({}, (401, {"error": "invalid_client"})),
            (
                {"client_id": "alice", "client_secret": "a:b c", "grant_type": "password"},
                (400, {"error": "unsupported_grant_type"}),
            ),
        ],
        ids=["wrong secret", "unknown client", "no client", "another grant"],
    )
    def test_others_get_none(
        self, identity: IdentityProvider, form: dict[str, str], expected: tuple[int, dict[str, object]]
    ) -> None:
        assert ask(identity, form) == expected

    def test_a_token_says_how_it_is_signed(self, identity: IdentityProvider) -> None:
        head = identity.token("alice").split(".")[0]
        assert json.loads(urlsafe_b64decode(head + "==")) == {"alg": "RS256", "typ": "JWT", "kid": "1"}
