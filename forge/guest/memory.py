"""Runs beside hostile code. Fills C's memory, recognises exceptions for lack of memory, and gives memory back.

Sources: torch's c10/core/impl/alloc_cpu.cpp ("can't allocate memory", "not enough memory") and its CUDA allocator
("out of memory", before which it asks NVML; a sandbox has no NVML). Linux's words for errno 12 are "Cannot allocate
memory". cuBLAS, cuDNN and cuSOLVER return a status such as CUBLAS_STATUS_ALLOC_FAILED.
"""

import ctypes

_MALLOPT = getattr(ctypes.CDLL(None), "mallopt", None)
_M_PERTURB = -6
"""Parameter of glibc's `mallopt` (malloc.h) for the byte with which new and freed memory is filled."""
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
    """Return a device's memory that torch keeps unused, if it is much: other guests of the device may need it."""
    import torch

    if device == "cuda" and torch.cuda.memory_reserved() - torch.cuda.memory_allocated() > MOST_KEPT_BYTES:
        torch.cuda.empty_cache()
