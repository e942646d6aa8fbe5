"""Says what an author learns of a platform, and reads a profiler's export."""

from pathlib import Path

from forge.app.user.user_paths import read_named
from forge.errors import UsageError
from forge.platforms import PLATFORMS
from forge.platforms.packs import EXPORT_BYTES, CounterReading, Pack, read_export


def read_profile(pack: Pack, untrusted_text: str) -> tuple[CounterReading, ...]:
    """Return the numbers of `TOOL:FILE`, a profiler's export; raise UsageError."""
    tool, colon, name = untrusted_text.partition(":")
    if not colon:
        expected = ", ".join(f"{one}:FILE" for one in pack.readers)
        raise UsageError(f"bad profile {untrusted_text[:200]!r}: expected {expected}")
    what = f"the profile {name[:200]!r}"
    content = read_named(Path(name), what=what, expected=f"an export of {tool}", limit_bytes=EXPORT_BYTES)
    return read_export(pack, tool, content)


def judging(pack: Pack) -> str:
    """Say in one sentence whether Forge judges kernels of a pack's platform."""
    if pack.name in PLATFORMS:
        return f"Forge judges kernels for {pack.title} on a machine that has one."
    return f"Forge judges no kernel for {pack.title}: it runs kernels on {' and '.join(PLATFORMS)} alone."
