"""Runs beside hostile code. What C's allocator fills memory with, and whether an exception says that memory ran out.

Source: torch's c10/core/impl/alloc_cpu.cpp ("can't allocate memory", "not enough memory"), its CUDA allocator ("out
of memory"), and Linux's own words for errno 12 ("Cannot allocate memory").
"""

import ctypes

_MALLOPT = getattr(ctypes.CDLL(None), "mallopt", None)
_M_PERTURB = -6
"""Parameter of glibc's `mallopt` (malloc.h): the byte that new and freed memory is filled with."""
_SAID = ("not enough memory", "out of memory", "can't allocate memory", "Cannot allocate memory")


def fill_with(byte: int) -> None:
    """Fill what is allocated and freed from now on: reading it before writing shows. Nothing where C has no such."""
    if _MALLOPT is not None:
        _MALLOPT(_M_PERTURB, byte)


def ran_out(error: BaseException) -> bool:
    """Whether that is what it says; an exception of a candidate's may raise when it is asked."""
    if isinstance(error, MemoryError):
        return True
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 (a candidate's own exception: whatever it raises is its own)
        return False
    return any(words in text for words in _SAID)
