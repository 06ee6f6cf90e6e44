"""`demux` as a person uses it: in processes of its own, started, watched, stopped and killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from demux.core.streaming.session import SHORT_LIVED

PROJECT = Path(__file__).parents[3]
DEMUX = str(Path(sys.executable).with_name("demux"))
_PATIENCE_S = 300
# the session of this process puts its own settings there; a short-lived JVM must not compile for long
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))} | {
    "JAVA_TOOL_OPTIONS": SHORT_LIVED["spark.driver.extraJavaOptions"]
}


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


class Command(Protocol):
    def __call__(self, *words: str) -> Said: ...


def run(
    words: Sequence[str],
    environment: Mapping[str, str] = MappingProxyType({}),
    folder: Path = PROJECT,
) -> Said:
    """Return how the program ended; it has these variables besides, and begins in the folder."""
    ended = subprocess.run(
        words,
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    return Said(ended.returncode, ended.stdout, ended.stderr)


@contextmanager
def running(
    words: Sequence[str], environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[str]]:
    """Start the program in a process group of its own, as a terminal does; it is dead when the block ends.

    It has these variables besides.
    """
    with subprocess.Popen(
        words,
        cwd=PROJECT,
        env={**ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    """Return when the condition holds; fail when the process, if one is given, ends before, or it never does."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        if process is not None:
            assert process.poll() is None, f"ended with {process.returncode}: {process.communicate()[0]}"
        assert time.monotonic() < deadline
        # only a pause between two looks
        time.sleep(0.02)


def wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    """Return when the program has printed a line with the text; fail when it ends before."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"{text!r} is not in {''.join(seen)!r}")
