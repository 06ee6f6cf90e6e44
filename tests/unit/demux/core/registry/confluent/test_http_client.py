"""How a registry over HTTP fails, whom it lets in, and what is said then."""

from __future__ import annotations

import base64
import json
import logging
import ssl
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from demux.core.errors import (
    DemuxError,
    ExitCode,
    RegistryRefused,
    RegistryUnavailable,
    SchemaUnknown,
    SecretMissing,
    SettingsInvalid,
)
from demux.core.registry.confluent.http_client import Rest
from demux.core.registry.confluent.registry import ConfluentRegistry
from demux.core.settings.settings import RegistrySettings
from tests.fakes.registry_server import FakeRegistry, Fault, Way, proto, serving
from tools.servers.ports import free_ports
from tools.servers.tls.certificates import Authority

ONE = 'syntax = "proto3"; message One {}'
PLANTED = "planted-7Xq9"
SECRETS: Mapping[str, str] = {"P": PLANTED, "T": PLANTED}
BASIC: Mapping[str, str] = {"username": "alice", "password": "secret:env/P"}
TOKEN: Mapping[str, str] = {"token": "secret:env/T"}

Connect = Callable[..., ConfluentRegistry]


class TestFailing:
    @pytest.mark.parametrize(
        ("fault", "what"),
        [
            (Fault(429), "answered 429"),
            (
                Fault(500, '{"error_code": 50001, "message": "Error in the backend"}'),
                "answered 500 (Error in the backend)",
            ),
            (Fault(503, "<html>busy</html>"), "answered 503"),
            (Fault(200, "<html>Sign in</html>"), "answered with something that is not JSON"),
            (Fault(200, '{"schema": "message X {}"'), "answered with something that is not JSON"),
            (Fault(200, '["not", "a schema"]'), "answered with JSON of another shape"),
            (Fault(200, '{"schemaType": "PROTOBUF"}'), "answered with JSON of another shape"),
            (Fault(200, "null"), "answered with JSON of another shape"),
            (Fault(200, '{"schema": "syntax"}', way=Way.TRUNCATED), "broke off its answer"),
            (Fault(way=Way.CUT_OFF), "was not reached: Remote end closed connection without response"),
        ],
    )
    def test_it_is_asked_again_and_then_said_to_be_unavailable(
        self, fake: FakeRegistry, connect: Connect, waits: list[float], fault: Fault, what: str
    ) -> None:
        schema_id = fake.put("main", proto(ONE))
        fake.faults.extend([fault, fault])
        assert connect(retries=2).schema(schema_id).text == ONE
        fake.faults.extend([fault] * 3)
        with pytest.raises(RegistryUnavailable) as failure:
            connect(retries=2).schema(schema_id)
        assert failure.value.message.startswith(f"The registry at {fake.url} gave no usable answer: it {what}")
        assert failure.value.exit_code is ExitCode.TRANSIENT
        assert len(fake.faults) == 0
        assert len(waits) == 4
        assert all(0 < wait <= 5 for wait in waits)

    def test_retry_after_is_kept_to(self, fake: FakeRegistry, connect: Connect, waits: list[float]) -> None:
        fake.faults.extend([Fault(429, headers={"Retry-After": "2"}), Fault(503, headers={"Retry-After": "3"})])
        assert connect().subjects() == ()
        assert waits == [2, 3]

    def test_a_wait_longer_than_all_waits_may_take_is_not_waited_for(
        self, fake: FakeRegistry, connect: Connect, waits: list[float]
    ) -> None:
        fake.faults.append(Fault(429, headers={"Retry-After": "3600"}))
        with pytest.raises(RegistryUnavailable, match=r"answered 429, and asks to wait 3,600 s"):
            connect().subjects()
        assert waits == []

    def test_no_answer_in_time_is_given_up(self, fake: FakeRegistry, connect: Connect, waits: list[float]) -> None:
        fake.faults.extend([Fault(way=Way.NEVER)] * 2)
        with pytest.raises(RegistryUnavailable, match=r"it gave no whole answer within 0\.05 s"):
            connect(timeout_s=0.05, retries=1).subjects()
        assert len(waits) == 1

    def test_nobody_listening_is_said_with_the_host(self, waits: list[float]) -> None:
        url = f"http://127.0.0.1:{free_ports(1)[0]}"
        registry = ConfluentRegistry(Rest(RegistrySettings(url=url, retries=2), {}, waits.append))
        with pytest.raises(
            RegistryUnavailable, match=rf"registry at {url} gave no usable answer: .*Connection refused"
        ):
            registry.schema(1)
        assert len(waits) == 2

    def test_a_wrong_answer_is_not_kept(self, fake: FakeRegistry, connect: Connect) -> None:
        schema_id = fake.put("main", proto(ONE))
        registry = connect(retries=0)
        fake.faults.append(Fault(200, "{}"))
        with pytest.raises(RegistryUnavailable):
            registry.schema(schema_id)
        assert registry.schema(schema_id).text == ONE

    @pytest.mark.parametrize("fault", [Fault(404, "<html>"), Fault(404), Fault(302, headers={"Location": "/login"})])
    def test_an_address_without_a_registry_never_says_that_an_id_is_unknown(
        self, fake: FakeRegistry, connect: Connect, fault: Fault
    ) -> None:
        fake.faults.extend([fault, fault])
        with pytest.raises(
            RegistryUnavailable, match=rf"answers at {fake.url} does not speak as a schema registry does"
        ):
            connect().schema(1)

    def test_a_plain_404_of_a_registry_means_unknown(self, fake: FakeRegistry, connect: Connect) -> None:
        fake.faults.append(Fault(404, '{"error_code": 404, "message": "HTTP 404 Not Found"}'))
        with pytest.raises(SchemaUnknown):
            connect().schema(1)


class TestAccounts:
    @pytest.mark.parametrize(
        ("account", "header"),
        [
            (BASIC, "Basic " + base64.b64encode(f"alice:{PLANTED}".encode()).decode()),
            (TOKEN, f"Bearer {PLANTED}"),
        ],
    )
    def test_an_account_gets_in(
        self, fake: FakeRegistry, connect: Connect, account: Mapping[str, str], header: str
    ) -> None:
        fake.account = header
        assert connect(environ=SECRETS, **account).subjects() == ()

    @pytest.mark.parametrize(
        ("account", "sentence"),
        [
            (BASIC, "does not accept the user 'alice': Unauthorized."),
            (TOKEN, "does not accept our token: Unauthorized."),
            ({}, "wants an account: Unauthorized."),
        ],
    )
    def test_a_wrong_account_is_refused_at_once(
        self, fake: FakeRegistry, connect: Connect, waits: list[float], account: Mapping[str, str], sentence: str
    ) -> None:
        fake.account = "Basic other"
        with pytest.raises(RegistryRefused) as failure:
            connect(environ=SECRETS, **account).schema(1)
        assert failure.value.message == f"The registry at {fake.url} {sentence}"
        assert failure.value.exit_code is ExitCode.USAGE
        assert waits == []

    def test_accounts_of_other_programs_are_not_sent(
        self, fake: FakeRegistry, connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "netrc").write_text("machine 127.0.0.1 login alice password other")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
        fake.account = "Basic " + base64.b64encode(b"alice:other").decode()
        with pytest.raises(RegistryRefused, match="wants an account"):
            connect().subjects()

    def test_a_missing_permission_is_refused(self, fake: FakeRegistry, connect: Connect) -> None:
        fake.forbidden = True
        with pytest.raises(
            RegistryRefused, match=r"does not permit it to the user 'alice': User is denied operation Read"
        ):
            connect(environ=SECRETS, **BASIC).schema(1)

    def test_no_secret_is_ever_seen(
        self, fake: FakeRegistry, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        pair = base64.b64encode(f"alice:{PLANTED}".encode()).decode()
        seen = []
        for account in (BASIC, TOKEN):
            said = f"Basic {pair} {PLANTED}" if account is BASIC else f"Bearer {PLANTED}"
            echo = json.dumps({"error_code": 40101, "message": said})
            for fault in (
                Fault(401, echo),
                Fault(403, echo),
                Fault(500, echo),
                Fault(400, echo),
                Fault(way=Way.CUT_OFF),
            ):
                registry = connect(environ=SECRETS, retries=0, **account)
                fake.faults.append(fault)
                with pytest.raises(DemuxError) as failure:
                    registry.subjects()
                seen += traceback.format_exception(failure.value)
                seen += [repr(failure.value.fields), repr(failure.value.__context__), repr(vars(registry))]
        everything = "".join(seen) + caplog.text
        assert "127.0.0.1" in everything
        assert (PLANTED in everything, pair in everything) == (False, False)

    def test_a_token_that_no_header_may_hold_is_refused_unseen(self, connect: Connect) -> None:
        with pytest.raises(SettingsInvalid, match="secret:env/T is no token") as failure:
            connect(environ={"T": f"{PLANTED}\nX: y"}, **TOKEN)
        assert PLANTED not in "".join(traceback.format_exception(failure.value))

    def test_a_secret_that_is_not_there_is_named(self, connect: Connect) -> None:
        with pytest.raises(SecretMissing, match="secret:env/P"):
            connect(**BASIC)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "ours")


@pytest.fixture
def secure(authority: Authority) -> Iterator[FakeRegistry]:
    with serving(FakeRegistry(), _tls(authority)) as registry:
        yield registry


@pytest.fixture
def mutual(authority: Authority) -> Iterator[FakeRegistry]:
    tls = _tls(authority)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(authority.trust.pem)
    with serving(FakeRegistry(), tls) as registry:
        yield registry


class TestTls:
    def test_a_certificate_of_the_authority_in_ca_file_is_trusted(
        self, secure: FakeRegistry, authority: Authority
    ) -> None:
        assert _over_tls(secure, ca_file=authority.trust.pem).subjects() == ()

    def test_ca_file_comes_before_the_environment(
        self, secure: FakeRegistry, authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(Authority(tmp_path, "stranger").trust.pem))
        assert _over_tls(secure, ca_file=authority.trust.pem).subjects() == ()

    def test_a_certificate_of_another_authority_is_not(self, secure: FakeRegistry, tmp_path: Path) -> None:
        stranger = Authority(tmp_path, "stranger")
        for files in ({}, {"ca_file": stranger.trust.pem}):
            with pytest.raises(
                RegistryRefused, match=rf"not trust the certificate of the registry at {secure.url}: .*certificate"
            ) as failure:
                _over_tls(secure, **files).subjects()
            assert "registry.ca_file" in failure.value.remedy

    def test_our_certificate_gets_in_where_one_is_wanted(self, mutual: FakeRegistry, authority: Authority) -> None:
        keys, ca_file = authority.client("demux"), authority.trust.pem
        registry = _over_tls(mutual, ca_file=ca_file, certificate_file=keys.certificate, key_file=keys.key)
        assert registry.subjects() == ()
        with pytest.raises(RegistryRefused, match="does not accept our certificate") as failure:
            _over_tls(mutual, ca_file=ca_file).subjects()
        assert "registry.certificate_file" in failure.value.remedy

    def test_a_file_that_is_no_certificate_is_named(self, secure: FakeRegistry, tmp_path: Path) -> None:
        broken = tmp_path / "broken.pem"
        broken.write_text("no certificate")
        for path in (broken, tmp_path / "missing.pem"):
            with pytest.raises(SettingsInvalid, match=f"certificate files cannot be used .{path}"):
                _over_tls(secure, ca_file=path)

    def test_plain_http_where_tls_is_spoken_is_unavailable(self, secure: FakeRegistry) -> None:
        secure.url = secure.url.replace("https", "http")
        with pytest.raises(RegistryUnavailable):
            _over_tls(secure).subjects()


def _tls(authority: Authority) -> ssl.SSLContext:
    keys = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys.certificate, keys.key)
    return context


def _over_tls(registry: FakeRegistry, **files: Path) -> ConfluentRegistry:
    named = {key: str(path) for key, path in files.items()}
    settings = RegistrySettings.model_validate({"url": registry.url, "timeout_s": 5, "retries": 0, **named})
    return ConfluentRegistry(Rest(settings, {}))
