"""The C library's allocator in Spark's workers, which decode batch after batch into buffers of the same sizes."""

from __future__ import annotations

import ctypes
from functools import lru_cache

# mallopt(3)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 128 * 2**20
# the most that glibc takes
_BLOCK_BYTES = 32 * 2**20


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Keep up to 128 MiB of freed memory in this process, from now on; return whether the C library does that.

    By default glibc gives a large block back to the kernel as soon as it is free. The next batch then pays for each of
    its pages again: a sixth of the time to decode it. Another C library keeps its own rules.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc; a system where no library means no handle
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES) and mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES))
