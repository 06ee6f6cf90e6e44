"""The command line as a process, with a terminal at which somebody answers."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def on_terminal(here: Path, typed: str, *words: str) -> tuple[int, str]:
    """Exit code and output of the command line, with a terminal to answer at."""
    with at_terminal(here, *words) as (process, keyboard):
        os.write(keyboard, typed.encode())
        text, _ = process.communicate(timeout=120)
    return process.returncode, text


@contextmanager
def at_terminal(here: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command line as a process, and the keyboard of its terminal; the process has ended after the block."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", "from demux.cli import main; main()", *words],
            cwd=here,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            yield process, ours
            process.wait(timeout=120)
    finally:
        os.close(ours)
        os.close(theirs)
