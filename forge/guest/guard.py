"""Runs beside hostile code. Closes pages of the arena while a layout lasts, so that a stray access faults.

This finds mistakes, not malice. Code that opens the pages again gains nothing: the host compares every byte outside
the outputs after each call, whatever pages were closed.
"""

import ctypes
import mmap
from collections.abc import Sequence

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_ACCESS = {"none": 0, "read": mmap.PROT_READ}


def close_pages(arena: mmap.mmap, size_bytes: int, ranges: Sequence[Sequence[object]]) -> None:
    """Open the whole arena, then close each `[start, end, access]`."""
    base = ctypes.addressof(ctypes.c_char.from_buffer(arena))
    _protect(base, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE)
    for start, end, access in ranges:
        first, last = int(str(start)), int(str(end))
        _protect(base + first, last - first, _ACCESS[str(access)])


def _protect(address: int, length: int, access: int) -> None:
    if _LIBC.mprotect(address, length, access) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
