"""Keeps memory that torch frees with this process, since large tensors would otherwise cost a page fault each 4 KiB.

The judge computes dozens of fp64 tensors of some MiB for each large question: fresh pages for them take it half of
its time. Guests keep their memory in the same way (`sandbox/stage.py`).
"""

import ctypes
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Numbers of two settings in glibc's malloc.h: bytes of free memory that are returned, and bytes of a block that gets
pages of its own."""
KEPT_BYTES = 2**30
"""Value of both settings in bytes. It is larger than any tensor that the judge makes."""


@cache
def keep_freed_memory() -> bool:
    """Make this process keep freed memory; return False if its C library can't (mallopt(3); glibc can)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(one, KEPT_BYTES) for one in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD))
