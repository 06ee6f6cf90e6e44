"""An S3 server: versitygw on 127.0.0.1, whose buckets are folders of this machine. Built from its Go module.

`locks/versitygw/` pins it: go.mod its version and those of all modules it needs, go.sum their checksums, which `go`
checks. Whoever changes the version there runs `go get -tool …@VERSION` in that folder.
"""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from demux.core.root.layout import cache_folder
from tools.servers.go.program import GoProgram, built
from tools.servers.packages import LOCKS
from tools.servers.ports import HOST, free_ports
from tools.servers.process import Launch, Life, Server

PROGRAM = GoProgram("S3 server", LOCKS / "versitygw", "github.com/versity/versitygw/cmd/versitygw")
REGION = "us-east-1"
# of a server that only this machine reaches
ACCESS_KEY = "demux"
SECRET_KEY = "demux-on-loopback"


@dataclass(frozen=True, slots=True)
class ObjectStoreSettings:
    """The options of one server.

    Attributes:
        port: where it listens; None: a free one.
        buckets: those that are there from the beginning.
        life: what happens to it when the starting process ends.
    """

    port: int | None = None
    buckets: tuple[str, ...] = ("demux",)
    life: Life = Life.WITH_STARTER


class ObjectStore(Server):
    """A server, whose log has a line for each request; started again, it has its data of before.

    Attributes:
        folder: holds a folder for each bucket.
    """

    start_s = 30.0

    def __init__(self, launch: Launch, folder: Path) -> None:
        self.url = f"http://{HOST}:{launch.ports[0]}"
        self.folder = folder
        super().__init__(launch)

    def _probe(self) -> Callable[[], bool]:
        return lambda: _answers(self.url)


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
