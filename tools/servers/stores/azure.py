"""An Azure Blob server: Azurite on 127.0.0.1, from npm. It has the Blob API, and not that of Data Lake Storage.

`locks/azurite/` pins it and all packages that it needs, with their checksums.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from filelock import FileLock

from demux.core.root.layout import cache_folder
from tools.servers.errors import PackagesUnavailable, ServerFailed, last_lines
from tools.servers.packages import LOCKS
from tools.servers.ports import HOST, free_ports
from tools.servers.process import Launch, Life, Server

PACKAGES = LOCKS / "azurite"
ACCOUNT = "demux"
# of a server that only this machine reaches
ACCOUNT_KEY = base64.b64encode(b"demux-on-loopback").decode()
_PROGRAM = "node_modules/azurite/dist/src/blob/main.js"
_API = "2021-08-06"
_INSTALL_S = 600
_ANSWER_S = 60.0


class AzureStore(Server):
    """A server."""

    start_s = 60.0

    def __init__(self, launch: Launch) -> None:
        self.url = f"http://{HOST}:{launch.ports[0]}/{ACCOUNT}"
        self._port = launch.ports[0]
        super().__init__(launch)

    def create_container(self, name: str) -> None:
        """Make a container.

        Raises:
            ServerFailed: the server refused.
        """
        now = datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"x-ms-date": now, "x-ms-version": _API}
        # https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
        lines = ["PUT", *[""] * 11, *(f"{name}:{value}" for name, value in headers.items())]
        text = "\n".join([*lines, f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"])
        digest = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
        signature = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        status = self._asked("PUT", f"/{ACCOUNT}/{name}?restype=container", {**headers, "Authorization": signature})
        if status != http.client.CREATED:
            raise ServerFailed(
                f"Azurite did not make the container {name}: HTTP status {status}.", last_lines(self.log)
            )

    def _probe(self) -> Callable[[], bool]:
        return self._answers

    def _answers(self) -> bool:
        try:
            self._asked("GET", "/", {})
        except OSError:
            return False
        return True

    def _asked(self, method: str, path: str, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=_ANSWER_S)
        try:
            connection.request(method, path, headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()


def start_azure(folder: Path) -> AzureStore:
    """Return a server that answers, with its data and its log in the folder; installs it the first time.

    Raises:
        PackagesUnavailable: there is no Node.js, or the packages could not be installed.
        ServerFailed: the server did not start; with the end of its log.
    """
    home, port = installed(cache_folder(os.environ)), free_ports(1)[0]
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--blobHost", HOST, "--blobPort", str(port), "--location", str(folder / "data"), "--skipApiVersionCheck"]
    words = ["node", str(home / _PROGRAM), *options, "--silent", "--disableTelemetry"]
    account = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}
    return AzureStore(Launch("Azurite", words, folder, folder / "azurite.log", account, (port,), Life.WITH_STARTER))


def version() -> str:
    """Return the version that is pinned."""
    return str(json.loads((PACKAGES / "package.json").read_text(encoding="utf-8"))["dependencies"]["azurite"])


def installed(cache: Path) -> Path:
    """Return the folder of its packages, installed the first time; safe from several processes.

    Raises:
        PackagesUnavailable: there is no Node.js, or they could not be installed.
    """
    servers = cache / "servers"
    home = servers / f"azurite-{version()}"
    servers.mkdir(parents=True, exist_ok=True)
    with FileLock(servers / "azurite.lock"):
        if not home.exists():
            _install(home, servers)
    return home


def _install(home: Path, servers: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise PackagesUnavailable(
            "The Azure server comes from npm, and there is no `npm` or `node` in PATH.", "Install Node.js 20 or newer."
        )
    with tempfile.TemporaryDirectory(prefix="azurite-", dir=servers) as own:
        fresh, log = Path(own, "fresh"), Path(own, "log")
        shutil.copytree(PACKAGES, fresh)
        words = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        with log.open("wb") as out:
            try:
                code = subprocess.run(
                    words, cwd=fresh, stdout=out, stderr=out, timeout=_INSTALL_S, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        if code != 0:
            raise PackagesUnavailable(
                f"The Azure server could not be installed from npm: {last_lines(log)}",
                "Check that `npm` reaches its registry (`npm config get registry`), and try again.",
            )
        fresh.replace(home)
