"""Runs beside hostile code. Maps the arena far away, and closes its pages while a layout lasts.

A stray access to a closed page faults.

This finds mistakes, not malice. Code that opens the pages again gains nothing: the host compares every byte outside
the outputs after each call, whatever pages were closed.
"""

import ctypes
import mmap
from collections.abc import Sequence

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_LIBC.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
_LIBC.mmap.restype = ctypes.c_void_p
_DISTANCE, _LEAST_DISTANCE = 2**40, 2**32
"""Bytes by which the second mapping lies below the first one, and the fewest between them. Chosen: other mappings lie
below the first one, and seldom take a tebibyte."""
_ACCESS = {"none": 0, "read": mmap.PROT_READ}


def map_far(descriptor: int, start: int, size_bytes: int) -> ctypes.Array[ctypes.c_ubyte] | None:
    """Map a file that is mapped at `start` once more, at an address further below than 32 bits count.

    Operands of real programs lie that far apart, in the heap and in mappings. Return None if the system gives another
    address: then all operands lie near each other. It looks upwards from there if something is in the way.
    """
    rights = mmap.PROT_READ | mmap.PROT_WRITE
    address = _LIBC.mmap(start - _DISTANCE, size_bytes, rights, mmap.MAP_SHARED, descriptor, 0)
    if address is None or address > start - _LEAST_DISTANCE - size_bytes:
        return None
    return (ctypes.c_ubyte * size_bytes).from_address(address)


def close_pages(arena: mmap.mmap, size_bytes: int, ranges: Sequence[Sequence[object]]) -> None:
    """Open the whole arena, also to processes that are forked, then close each `[start, end, access]`."""
    if hasattr(mmap, "MADV_DOFORK"):
        arena.madvise(mmap.MADV_DOFORK)
    base = ctypes.addressof(ctypes.c_char.from_buffer(arena))
    _protect(base, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE)
    for start, end, access in ranges:
        first, last = int(str(start)), int(str(end))
        _protect(base + first, last - first, _ACCESS[str(access)])


def _protect(address: int, length: int, access: int) -> None:
    if _LIBC.mprotect(address, length, access) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
