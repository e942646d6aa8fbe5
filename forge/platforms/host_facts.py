"""Facts about this machine's processor that an author of a kernel asks for: cores, vector extensions, caches."""

import os
from pathlib import Path

from forge.lookup.machine import cpu_field

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
"""Folder in which Linux describes a processor's caches (Documentation/ABI/testing/sysfs-devices-system-cpu)."""
VECTORS = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "avx512_fp16"),
    *("avx_vnni", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8", "asimd", "asimdhp", "bf16", "sve", "sve2"),
)
"""Flags of /proc/cpuinfo that say which vector instructions there are, oldest first for each architecture."""


def host_facts() -> tuple[tuple[str, str], ...]:
    """Return names and values for a table; what the system doesn't say is left out."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    flags = set((cpu_field("flags") or cpu_field("Features") or "").split())
    found = (
        ("model", cpu_field("model name") or ""),
        ("processors that a guest may use", str(usable)),
        ("vector extensions", ", ".join(name for name in VECTORS if name in flags)),
        ("caches", ", ".join(_caches())),
    )
    return tuple((name, value) for name, value in found if value)


def _caches() -> list[str]:
    """Return level, kind and size of each cache that holds data, smallest first."""
    found = []
    for folder in sorted(CACHES.glob("index*")):
        level, kind, size = (file_text(folder / name) for name in ("level", "type", "size"))
        if level and size and kind in ("Data", "Unified"):
            shared = " for all that share it" if kind == "Unified" and level != "2" else ""
            found.append(f"L{level} {size}iB{shared}")
    return found


def file_text(path: Path | str) -> str:
    """Return the text of one of the system's files without space around it; empty if it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
