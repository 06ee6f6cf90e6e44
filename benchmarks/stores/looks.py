"""The page and quarantine of a root in a store that answers late, without Spark; and of the same root on the disk."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.parts.decoding import timed
from benchmarks.parts.status_page import fill
from benchmarks.stores.bars import Bar
from benchmarks.support.sizes import Sizes
from demux.cli.options import settings_of
from demux.core.root.layout import layout_of
from demux.core.settings.store import StoreSettings
from demux.operations.status.html_page import page
from demux.operations.status.json_view import status_json
from demux.pipeline.status import status_reader
from tools.servers.stores.slow import SlowStore

_ROOT = "s3://demux/looks"
# 20 of each game
_QUARANTINED = 20
_UPLOADS = 16
_MOST_S = 5


def looks(folder: Path, sizes: Sizes, store: StoreSettings, slow: SlowStore, latency_s: float) -> list[Bar]:
    """Return how long it takes to look at a root."""
    local = folder / "looks"
    fill(str(local), sizes.most, _QUARANTINED * sizes.most)
    said = [f"store.{key}={value}" for key, value in store.model_dump(mode="json", exclude_defaults=True).items()]
    _upload(local, said)
    slow.wait(latency_s)
    late = f"{sizes.most:,} games, {1000 * latency_s:g} ms on each request"
    bars = [
        _bar(f"first page of `demux serve`, {late}", sizes, lambda root, said: _page(root, said), local, said),
        *(
            _bar(f"`demux {' '.join(words)}`, {late}", sizes, _command([*words, *more]), local, said)
            for words, more in ((["status", "--html"], [str(folder / "page.html")]), (["quarantine", "list"], []))
        ),
    ]
    slow.wait(0)
    return bars


def _bar(what: str, sizes: Sizes, look: Callable[[str, list[str]], object], local: Path, said: list[str]) -> Bar:
    here = statistics.median(timed(lambda: look(str(local), [])) for _ in range(sizes.repeats))
    there = statistics.median(timed(lambda: look(_ROOT, said)) for _ in range(sizes.repeats))
    print(f"{what}: {there:.1f} s, on the disk {here:.1f} s", flush=True)
    return Bar(what, f"on the disk {here:.1f} s", there, most=_MOST_S, unit=" s")


def _page(root: str, said: Sequence[str]) -> None:
    page(status_json(status_reader(settings_of(None, root, list(said)))()))


def _command(words: Sequence[str]) -> Callable[[str, list[str]], None]:
    program = [sys.executable, "-c", "from demux.cli import main; main()", *words]

    def run(root: str, said: list[str]) -> None:
        settings = [word for one in said for word in ("--set", one)]
        subprocess.run([*program, "--root", root, *settings], check=True, stdout=subprocess.DEVNULL)

    return run


def _upload(local: Path, said: list[str]) -> None:
    storage = layout_of(settings_of(None, _ROOT, said)).storage
    files = [path for path in sorted(local.rglob("*")) if path.is_file()]
    with ThreadPoolExecutor(_UPLOADS) as pool:
        list(pool.map(lambda path: storage.write(f"{_ROOT}/{path.relative_to(local)}", path.read_bytes()), files))
