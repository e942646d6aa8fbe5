"""Hands over files from the builder under names that lead elsewhere and under the interpreter's own.

Refused by: build COMPILE_ERROR or TAMPERING
Catalogue: G18 G8
Language: cpp
Build: extension
"""

import sys

from torch.utils.cpp_extension import load_inline


def hand_over(files, arena_bytes):
    parts = [wire.ARTIFACT_COUNT.pack(2)]
    for name in ("../../serve.py", "libc.so.6"):
        parts += [wire.ARTIFACT_ENTRY.pack(name.encode(), 4), b"evil"]
    packed = b"".join(parts)
    with mmap.mmap(wire.ARENA, arena_bytes) as arena:
        arena[: len(packed)] = packed
    return len(packed)


if "guest.build" in sys.modules:
    import mmap

    wire = sys.modules["guest.wire"]
    sys.modules["guest.build"]._hand_over = hand_over


def fused_add_rmsnorm(x, residual, weight, eps):
    return load_inline(name="never", cpp_sources="")
