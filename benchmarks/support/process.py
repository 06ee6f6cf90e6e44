"""What a command costs as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """The cost of a process: seconds by the clock, seconds of CPU, and the most MiB of memory."""

    seconds: float
    cpu_s: float
    memory_mib: float


def cost_of(words: Sequence[str], codes: Iterable[int] = (0,)) -> ProcessCost:
    """Return what `demux` with these words costs; it must end with one of the exit codes."""
    began = time.monotonic()
    program = [sys.executable, "-c", "from demux.cli import main; main()", *words]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL)
    _, state, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(state)
    assert process.returncode in codes, words
    # Linux counts in KiB
    return ProcessCost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
