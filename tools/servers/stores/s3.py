"""An S3 server: versitygw on 127.0.0.1, whose buckets are folders of this machine. Built from its Go module.

`locks/versitygw/` pins it: go.mod its version and those of all modules it needs, go.sum their checksums, which `go`
checks. Whoever changes the version there runs `go get -tool …@VERSION` in that folder.
"""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tools.servers.go.program import GoProgram, built
from tools.servers.packages import LOCKS, cache_folder
from tools.servers.ports import HOST, free_ports
from tools.servers.process import Launch, Life, ServerProcess

PROGRAM = GoProgram("S3 server", LOCKS / "versitygw", "github.com/versity/versitygw/cmd/versitygw")
REGION = "us-east-1"
# of a server that only this machine reaches
ACCESS_KEY = "demux"
SECRET_KEY = "demux-on-loopback"
_START_S = 30.0


@dataclass(frozen=True, slots=True)
class ObjectStoreSettings:
    """What may differ from one server to the next.

    Attributes:
        port: where it listens; None: a free one.
        buckets: those that are there from the beginning.
        life: what happens to it when the starting process ends.
    """

    port: int | None = None
    buckets: tuple[str, ...] = ("demux",)
    life: Life = Life.WITH_STARTER


class ObjectStore:
    """A server that was started here; stopped when the block ends.

    Attributes:
        url: its endpoint.
        log: the file that its output goes to: a line for each request.
        folder: holds a folder for each bucket.
    """

    def __init__(self, launch: Launch, folder: Path) -> None:
        self._launch = launch
        self.url = f"http://{HOST}:{launch.ports[0]}"
        self.log = launch.log
        self.folder = folder
        self._process = ServerProcess(launch)
        self._wait()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def stop(self) -> None:
        """End it; the data stays in its folder."""
        self._process.stop()

    def restart(self) -> None:
        """Stop it if it still runs, and start it on the same port and data; returns when it answers."""
        self._process.stop()
        self._process = ServerProcess(self._launch)
        self._wait()

    def __enter__(self) -> ObjectStore:
        """The server itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()

    def _wait(self) -> None:
        self._process.wait_until(lambda: _answers(self.url), _START_S)


def start_object_store(folder: Path, settings: ObjectStoreSettings | None = None) -> ObjectStore:
    """Return a server that answers, with its data and its log in the folder; builds it the first time.

    Raises:
        PackagesUnavailable: there is no Go, or the server could not be built.
        PortTaken: another process listens on its port.
        ServerFailed: the server did not start; with the end of its log.
    """
    settings = settings or ObjectStoreSettings()
    program = built(PROGRAM, cache_folder(os.environ))
    data = folder / "data"
    for bucket in settings.buckets:
        (data / bucket).mkdir(parents=True, exist_ok=True)
    port = settings.port or free_ports(1)[0]
    words = [str(program), "--port", f"{HOST}:{port}", "--region", REGION, "posix", str(data)]
    keys = {"ROOT_ACCESS_KEY_ID": ACCESS_KEY, "ROOT_SECRET_ACCESS_KEY": SECRET_KEY}
    return ObjectStore(Launch("S3 server", words, folder, folder / "store.log", keys, (port,), settings.life), data)


def version() -> str:
    """Return the version that is pinned, without its `v`."""
    text = (PROGRAM.folder / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"github\.com/versity/versitygw v(\S+)", text)
    assert found is not None, "go.mod names it"
    return found[1]


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=1.0).close()
    except urllib.error.HTTPError:
        # it asks who we are
        return True
    except OSError:
        return False
    return True
