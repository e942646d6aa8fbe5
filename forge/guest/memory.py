"""Runs beside hostile code. Sets what C's allocator fills memory with, and recognises exceptions for lack of memory.

Source: torch's c10/core/impl/alloc_cpu.cpp ("can't allocate memory", "not enough memory"), its CUDA allocator ("out
of memory"), and Linux's own words for errno 12 ("Cannot allocate memory").
"""

import ctypes

_MALLOPT = getattr(ctypes.CDLL(None), "mallopt", None)
_M_PERTURB = -6
"""Parameter of glibc's `mallopt` (malloc.h) for the byte with which new and freed memory is filled."""
_OUT_OF_MEMORY_WORDS = ("not enough memory", "out of memory", "can't allocate memory", "Cannot allocate memory")
"""Words in messages of exceptions for lack of memory."""


def fill_with(byte: int) -> None:
    """Fill memory with `byte` from now on as it is allocated and freed, so that reading it before writing shows.

    Do nothing if the C library has no such setting.
    """
    if _MALLOPT is not None:
        _MALLOPT(_M_PERTURB, byte)


def ran_out(error: BaseException) -> bool:
    """Return whether the exception says that memory ran out.

    Turning a candidate's exception into text may raise itself.
    """
    if isinstance(error, MemoryError):
        return True
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 (a candidate's exception may raise anything)
        return False
    return any(words in text for words in _OUT_OF_MEMORY_WORDS)
