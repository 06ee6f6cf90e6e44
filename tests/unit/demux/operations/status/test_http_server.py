"""The server over real HTTP on a free port of loopback."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import pytest

from demux.core.errors import SettingsInvalid
from demux.operations.status.http_server import SiteCache, StatusServer
from demux.operations.status.model import Status
from tests.support.data.statuses import HOSTILE, WORSE, busy, key


class Response:
    """What came back."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()

    @property
    def text(self) -> str:
        return self.body.decode()


class Client:
    def __init__(self, server: StatusServer) -> None:
        self.port = int(server.server_address[1])

    def ask(self, target: str, method: str = "GET", **headers: str) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            # http.client refuses some targets that others send
            connection.putrequest(method, "/", skip_accept_encoding=True, skip_host="Host" in headers)
            connection._buffer[0] = f"{method} {target} HTTP/1.1".encode()  # type: ignore[attr-defined]
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            return Response(connection.getresponse())
        finally:
            connection.close()

    def raw(self, sent: bytes) -> bytes:
        """What comes back for bytes that may be no request."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as to:
            to.sendall(sent)
            # the server may have closed it already
            with suppress(OSError):
                to.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: to.recv(65536), b""))


@contextmanager
def serving(read: Callable[[], Status], **options: float) -> Iterator[Client]:
    server = StatusServer(SiteCache(read, **options), "127.0.0.1", 0)  # type: ignore[arg-type]
    server.start()
    try:
        yield Client(server)
    finally:
        server.stop()


STATUS = busy(40, rounds=3, first=(*HOSTILE, *WORSE))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serving(lambda: STATUS, kept_s=3600.0) as found:
        yield found


def test_the_page_may_run_its_own_script_and_style_and_nothing_else(client: Client) -> None:
    answer = client.ask("/")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.text.startswith("<!doctype html>")


@pytest.mark.parametrize("target", ["/", "/status.json", "/metrics", "/healthz", "/nothing", "/game/x"])
def test_every_answer_keeps_browsers_from_guessing_framing_and_storing(client: Client, target: str) -> None:
    headers = client.ask(target).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "Python" not in headers["Server"]


def test_the_data_the_metrics_and_the_health_are_what_they_say(client: Client) -> None:
    assert len(json.loads(client.ask("/status.json").body)["games"]) == 40
    assert "demux_games{" in client.ask("/metrics").text
    assert client.ask("/metrics").headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert (client.ask("/healthz").status, client.ask("/healthz").text) == (200, "ok\n")


def test_what_is_long_is_packed_for_who_takes_it(client: Client) -> None:
    packed = client.ask("/status.json", Accept_Encoding="br, gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == client.ask("/status.json").body


def test_a_head_has_the_headers_of_the_get_and_no_body(client: Client) -> None:
    head, get = client.ask("/", "HEAD"), client.ask("/")
    assert head.body == b""
    assert (head.status, head.headers["Content-Length"]) == (get.status, get.headers["Content-Length"])


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_other_methods_are_not_allowed(client: Client, method: str) -> None:
    answer = client.ask("/", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "target",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page/page.js",
        "/status.json/",
        "//etc/passwd",
        "/./",
        "\\..\\windows",
        "http://[",
        "*",
        "/\x00",
        "/game",
        "/" + "a" * 20_000,
    ],
)
def test_a_path_that_is_not_on_the_list_is_not_found_whatever_it_looks_like(client: Client, target: str) -> None:
    answer = client.ask(target)
    assert answer.status == 404
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "name",
    [
        "nobody",
        "../../etc/passwd",
        "<script>alert(1)</script>",
        "%0d%0aSet-Cookie:x=1",
        "%00",
        "game_00001%00",
        "game_00001%2f..%2f..",
        "game_00001/../..",
        "%E2%80%AEgame_00001",
        "\u202egame_00001",
        "game_00001\x00",
        "GAME_00001",
        "Chess",
        "",
        *("'\"`", "x" * 9000),
    ],
)
def test_a_page_of_a_game_that_there_is_not_is_refused_in_words_that_say_nothing_back(
    client: Client, name: str
) -> None:
    answer = client.ask(f"/game/{name}".replace(" ", "%20"))
    assert answer.status == 404
    assert answer.text == (
        "No game has this key. A key is the name of the game's table below silver; the page / has all games.\n"
    )
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("name", [*HOSTILE, *WORSE])
def test_a_page_of_a_game_leads_to_it_on_the_page_of_all(client: Client, name: str) -> None:
    answer = client.ask(f"/game/{key(name)}")
    assert (answer.status, answer.headers["Location"]) == (302, f"../#game={key(name)}")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[", "0.0.0.0"])
def test_a_name_that_somebody_pointed_to_loopback_is_refused(client: Client, host: str) -> None:
    assert client.ask("/status.json", Host=host).status == 421


def test_a_name_that_was_allowed_is_ours_too() -> None:
    server = StatusServer(SiteCache(lambda: STATUS), "127.0.0.1", 0, ["Status.Example.com"])
    server.start()
    try:
        asked = {
            name: Client(server).ask("/healthz", Host=name).status for name in ("status.example.com", "example.com")
        }
    finally:
        server.stop()
    assert asked == {"status.example.com": 200, "example.com": 421}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8642", "[::1]:1"])
def test_loopback_has_its_own_names(client: Client, host: str) -> None:
    assert client.ask("/healthz", Host=host).status == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"",
    ],
)
def test_what_is_no_request_is_refused_or_left_and_the_next_is_answered(client: Client, sent: bytes) -> None:
    answer = client.raw(sent)
    assert answer == b"" or answer[:13] in {b"HTTP/1.0 400 ", b"HTTP/1.0 414 ", b"HTTP/1.0 431 ", b"HTTP/1.0 505 "}
    assert b"<" not in answer
    assert client.ask("/healthz").status == 200


def test_requests_at_the_same_time_read_the_tables_once() -> None:
    reads: list[int] = []
    together = threading.Barrier(8)

    def read() -> Status:
        reads.append(1)
        return STATUS

    with serving(read, kept_s=3600.0) as client, ThreadPoolExecutor(8) as pool:

        def ask(target: str) -> int:
            together.wait(30)
            return client.ask(target).status

        assert list(pool.map(ask, ["/", "/status.json", "/metrics", "/healthz"] * 2)) == [200] * 8
    assert len(reads) == 1


def test_too_many_connections_are_closed_and_when_they_end_the_next_is_answered() -> None:
    with serving(lambda: STATUS, kept_s=3600.0) as client, ExitStack() as idle:
        for _ in range(64):
            idle.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=30))
        # it takes connections in the order in which they came
        with socket.create_connection(("127.0.0.1", client.port), timeout=30) as one_more:
            assert one_more.recv(1) == b""
        idle.close()
        deadline = time.monotonic() + 60
        while client.raw(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")[:15] != b"HTTP/1.0 200 OK":
            assert time.monotonic() < deadline


def test_the_tables_are_read_again_once_what_is_known_of_them_is_too_old() -> None:
    now = [0.0]
    reads: list[int] = []

    def read() -> Status:
        reads.append(1)
        return STATUS

    sites = SiteCache(read, kept_s=2.0, clock=lambda: now[0])
    first = sites.newest()
    now[0] = 1.9
    assert sites.newest() is first
    now[0] = 2.0
    assert sites.newest() is not first
    assert len(reads) == 2


def test_a_root_that_cannot_be_read_makes_the_server_unhealthy_until_it_can() -> None:
    now = [0.0]
    broken = [True]

    def read() -> Status:
        if broken[0]:
            raise PermissionError("/secret/path is not yours")
        return STATUS

    server = StatusServer(SiteCache(read, clock=lambda: now[0]), "127.0.0.1", 0)
    server.start()
    try:
        client = Client(server)
        answer = client.ask("/healthz")
        assert (answer.status, "PermissionError" in answer.text, "/secret" in answer.text) == (503, True, False)
        assert client.ask("/metrics").status == 503
        broken[0], now[0] = False, 3.0
        assert client.ask("/healthz").status == 200
        assert "demux_status_read_failures_total 1\n" in client.ask("/metrics").text
    finally:
        server.stop()


def test_a_server_that_was_stopped_frees_its_port_at_once() -> None:
    first = StatusServer(SiteCache(lambda: STATUS), "127.0.0.1", 0)
    first.start()
    port = int(first.server_address[1])
    assert Client(first).ask("/healthz").status == 200
    first.stop()
    first.stop()
    with pytest.raises(ConnectionRefusedError):
        Client(first).ask("/healthz")
    again = StatusServer(SiteCache(lambda: STATUS), "127.0.0.1", port)
    again.stop()


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_an_address_that_cannot_be_used_is_said_in_a_sentence(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingsInvalid) as caught:
        StatusServer(SiteCache(lambda: STATUS), host, int(taken.getsockname()[1]))
    assert caught.value.message.startswith(f"The address {host} port ")
    assert caught.value.remedy == "Give another one with --port or --host, or end what has it."
