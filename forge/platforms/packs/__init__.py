"""Platform packs: what an author is told of a platform, and readers of what its profilers export.

To add a pack: its file, and its line in `PACKS`. A pack whose platform isn't in `PLATFORMS` can't judge here.
"""

from forge.errors import UnknownName, UsageError
from forge.platforms.packs.cpu import CPU
from forge.platforms.packs.cuda import CUDA
from forge.platforms.packs.metal import METAL
from forge.platforms.packs.pack import CounterReading, Pack
from forge.platforms.packs.rocm import ROCM

PACKS: dict[str, Pack] = {pack.name: pack for pack in (CPU, CUDA, ROCM, METAL)}
EXPORT_BYTES = 64 * 2**20
"""Size of a profiler's export in bytes, at most. Chosen; the host reads and parses all of it."""


def find_pack(name: str) -> Pack:
    """Return a platform's pack; raise UnknownName."""
    if name not in PACKS:
        raise UnknownName("platform pack", name, list(PACKS))
    return PACKS[name]


def read_export(pack: Pack, tool: str, untrusted: bytes) -> tuple[CounterReading, ...]:
    """Return the numbers of a profiler's export that the pack knows; raise UnknownName or UsageError."""
    if tool not in pack.readers:
        raise UnknownName(f"profiler of {pack.name}", tool, list(pack.readers))
    if len(untrusted) > EXPORT_BYTES:
        raise UsageError(f"the export has {len(untrusted)} bytes: expected at most {EXPORT_BYTES}")
    try:
        found = pack.readers[tool](untrusted.decode("utf-8", "replace"))
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise UsageError(
            f"the export isn't one of {tool}: {type(error).__name__}; expected its own format"
        ) from error
    if not found:
        known = ", ".join(one.id for one in pack.metrics if one.id.startswith(tool)) or f"those of {tool}"
        raise UsageError(f"the export has no counter that the pack of {pack.name} knows: expected some of {known}")
    return found


__all__ = ["PACKS", "CounterReading", "Pack", "find_pack", "read_export"]
