"""Runs beside hostile code. Whether an exception says that memory ran out, whichever allocator says it.

Source: torch's c10/core/impl/alloc_cpu.cpp ("can't allocate memory", "not enough memory"), its CUDA allocator ("out
of memory"), and Linux's own words for errno 12 ("Cannot allocate memory").
"""

_SAID = ("not enough memory", "out of memory", "can't allocate memory", "Cannot allocate memory")


def ran_out(error: BaseException) -> bool:
    """Whether that is what it says; an exception of a candidate's may raise when it is asked."""
    if isinstance(error, MemoryError):
        return True
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 (a candidate's own exception: whatever it raises is its own)
        return False
    return any(words in text for words in _SAID)
