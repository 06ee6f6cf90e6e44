"""The allocator keeps what is freed, so that the next batch finds its pages."""

from __future__ import annotations

import subprocess
import sys

_BLOCKS = """
import ctypes, resource, sys
from demux.core.spark.allocator import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
size = 4 * 2**20

def use():
    blocks = [libc.malloc(size) for _ in range(10)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    for block in blocks:
        libc.free(block)

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults_of(how: str) -> int:
    """Return how many pages the process got of the kernel while it used blocks of the same size again."""
    done = subprocess.run([sys.executable, "-c", _BLOCKS, how], check=True, capture_output=True, text=True)
    return int(done.stdout)


def test_pages_of_freed_blocks_are_used_again() -> None:
    assert faults_of("kept") * 10 < faults_of("given back")
