"""Which request is answered with what. Pure but for what it keeps; `server.py` speaks HTTP.

Paths are looked up in a closed list, never in a file system.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

from demux.core.names import is_key
from demux.operations.status import prometheus as metrics
from demux.operations.status.html_page import page, policy
from demux.operations.status.json_view import status_json
from demux.operations.status.model import Status

_TEXT = "text/plain; charset=utf-8"
_GAME = "/game/"
_WORTH_PACKING = 4096
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# https://owasp.org/www-project-secure-headers
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """A body, also compressed for clients that accept that; `packed` is None for a short one."""

    kind: str
    plain: bytes
    packed: bytes | None = None

    @staticmethod
    def of(kind: str, text: str) -> ResponseBody:
        """Return a body of a text."""
        plain = text.encode()
        return ResponseBody(kind, plain, gzip.compress(plain, 3, mtime=0) if len(plain) > _WORTH_PACKING else None)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer to a request: its status, its body, and headers of its own."""

    status: HTTPStatus
    body: ResponseBody
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> Mapping[str, str]:
        """Its headers and those of every answer."""
        return {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", **_HEADERS, **self.headers}


class StatusSite:
    """The pages of one status; each is made when it is asked for, and once. Safe to share between threads."""

    def __init__(
        self, status: Status, counts: metrics.ServerCounts, refresh_s: float, most_games: int = metrics.MOST_GAMES
    ) -> None:
        """Prepare the pages; `refresh_s` and `most_games` as in `page` and `metrics`."""
        self._status = status
        self._keys = frozenset(game.key for game in status.games)
        self._lock = threading.RLock()
        self._made: dict[str, ResponseBody] = {}
        self._json = ""
        self._refresh_s = refresh_s
        self._pages: Mapping[str, Callable[[], ResponseBody]] = {
            "/": lambda: ResponseBody.of("text/html; charset=utf-8", page(self._content(), refresh_s)),
            "/status.json": lambda: ResponseBody.of("application/json", self._content()),
            "/metrics": lambda: ResponseBody.of(metrics.KIND, metrics.metrics(status, counts, most_games)),
            "/healthz": lambda: ResponseBody.of(_TEXT, "ok\n"),
        }

    def answer(self, target: str) -> HttpResponse:
        """Return the answer to a GET of this target, as the request line has it."""
        path = _path(target)
        if path in self._pages:
            headers = {"Content-Security-Policy": f"{policy()}; frame-ancestors 'none'"} if path == "/" else {}
            return HttpResponse(HTTPStatus.OK, self._body(path), headers)
        if path.startswith(_GAME):
            return self._game(path.removeprefix(_GAME))
        return refusal(HTTPStatus.NOT_FOUND, "There is no such page. There are /, /status.json, /metrics and /healthz.")

    def _game(self, key: str) -> HttpResponse:
        # the key goes into a header, so its form is looked at whoever the games are
        if is_key(key) and key in self._keys:
            return HttpResponse(HTTPStatus.FOUND, ResponseBody.of(_TEXT, ""), {"Location": f"../#game={key}"})
        sentence = "No game has this key. A key is the name of the game's table below silver; the page / has all games."
        return refusal(HTTPStatus.NOT_FOUND, sentence)

    def _body(self, path: str) -> ResponseBody:
        with self._lock:
            if path not in self._made:
                self._made[path] = self._pages[path]()
            return self._made[path]

    def _content(self) -> str:
        if not self._json:
            self._json = status_json(self._status)
        return self._json


def refusal(status: HTTPStatus, sentence: str, **headers: str) -> HttpResponse:
    """Return an answer in plain text; the sentence should have nothing in it that the request had."""
    return HttpResponse(status, ResponseBody.of(_TEXT, f"{sentence}\n"), headers)


def is_ours(host_header: str | None, bound_to: str, names: Collection[str] = ()) -> bool:
    """Return whether a request means this server.

    On loopback only loopback's names do: a page elsewhere could point its own name here, and read what we answer.

    Args:
        names: other names that it has, such as that of a proxy before it.
    """
    if bound_to not in LOOPBACK:
        return True
    try:
        named = urlsplit(f"//{host_header or ''}").hostname
    except ValueError:
        return False
    return named in LOOPBACK or named in names


def _path(target: str) -> str:
    try:
        return urlsplit(target).path
    except ValueError:
        return ""
