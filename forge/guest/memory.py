"""Runs beside hostile code. Sets how C takes memory, recognises exceptions for lack of it, and gives memory back.

Sources: torch's c10/core/impl/alloc_cpu.cpp ("can't allocate memory", "not enough memory") and its CUDA allocator
("out of memory", before which it asks NVML; a sandbox has no NVML). Linux's words for errno 12 are "Cannot allocate
memory". cuBLAS, cuDNN and cuSOLVER return a status such as CUBLAS_STATUS_ALLOC_FAILED.
"""

import ctypes

_MALLOPT = getattr(ctypes.CDLL(None), "mallopt", None)
_M_PERTURB = -6
"""Parameter of glibc's `mallopt` (malloc.h) for the byte with which new and freed memory is filled."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` for two sizes in bytes. From the first on, free memory goes back to the system. From the
second on, an allocation gets a mapping of its own."""
_MOST_BYTES = (2**25, 2**31 - 1)
"""Largest sizes that these parameters take, in bytes: the first one by older versions of glibc, the second one by all
others."""
_OUT_OF_MEMORY_WORDS = (
    "not enough memory",
    "out of memory",
    "can't allocate memory",
    "Cannot allocate memory",
    "_STATUS_ALLOC_FAILED",
    "nvmlInit_v2_() INTERNAL ASSERT FAILED",
)
"""Words in messages of exceptions for lack of memory."""
MOST_KEPT_BYTES = 2**30
"""Most memory of a device that torch keeps unused between two layouts, in bytes. Chosen; most calls take less, and
taking memory anew costs milliseconds."""


def fill_with(byte: int) -> None:
    """Fill memory with `byte` from now on as it is allocated and freed, so that reading it before writing shows.

    Do nothing if the C library has no such setting.
    """
    if _MALLOPT is not None:
        _MALLOPT(_M_PERTURB, byte)


def keep_freed() -> None:
    """Let C's allocator keep what is freed from now on, so that outputs are put where earlier ones were.

    Otherwise the allocator gives the outputs of a chain back to the operating system. The next chain then takes a
    page fault for each of their pages, which takes as much time as a short kernel's work. A candidate could change
    that in its own process, for itself alone.
    """
    if _MALLOPT is None:
        return
    for size_bytes in _MOST_BYTES:
        _MALLOPT(_M_TRIM_THRESHOLD, size_bytes)
        _MALLOPT(_M_MMAP_THRESHOLD, size_bytes)


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


def give_unused_memory_back(device: str) -> None:
    """Let torch free the device memory that it keeps unused, from MOST_KEPT_BYTES on: other guests may need it."""
    import torch

    if device == "cuda" and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > MOST_KEPT_BYTES:
        torch.cuda.empty_cache()
