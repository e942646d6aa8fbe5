"""Hands over a listing whose lengths reach far past its end.

Refused by: build COMPILE_ERROR or TAMPERING
Catalogue: J18 G18
Language: cpp
Build: extension
"""

import sys

from torch.utils.cpp_extension import load_inline


def hand_over(files, arena_bytes):
    packed = wire.ARTIFACT_COUNT.pack(1) + wire.ARTIFACT_ENTRY.pack(b"a.so", 2**62)
    with mmap.mmap(wire.ARENA, arena_bytes) as arena:
        arena[: len(packed)] = packed
    return 2**31


if "guest.build" in sys.modules:
    import mmap

    wire = sys.modules["guest.wire"]
    sys.modules["guest.build"]._hand_over = hand_over


def fused_add_rmsnorm(x, residual, weight, eps):
    return load_inline(name="never", cpp_sources="")
