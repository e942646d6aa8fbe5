"""Runs beside hostile code. Builds a candidate's sources into artifact files; no answers are near.

The files go to the host as bytes in the arena. The host hashes them and never executes them itself.
"""

import importlib
import mmap
import sys
import traceback
from pathlib import Path

from . import channel, wire


def main() -> None:
    """Build once and reply."""
    setup = channel.read_command()
    if not isinstance(setup, channel.Setup):
        return
    language = importlib.import_module(".language", __package__)
    try:
        files: list[Path] = language.build(setup.body)
        size_bytes = _hand_over(files, int(str(setup.body["arena_bytes"])))
    except BaseException:  # noqa: BLE001 (building executes the candidate: whatever it raises is its own)
        traceback.print_exc()
        channel.reply(0, wire.BUILD_FAILED)
        return
    sys.stderr.flush()
    channel.reply(0, wire.DONE, completed=size_bytes)


def _hand_over(files: list[Path], arena_bytes: int) -> int:
    parts = [wire.ARTIFACT_COUNT.pack(len(files))]
    for file in files:
        content = file.read_bytes()
        parts += [wire.ARTIFACT_ENTRY.pack(file.name.encode(), len(content)), content]
    packed = b"".join(parts)
    if len(packed) > arena_bytes:
        raise ValueError(f"the build made {len(packed)} bytes: expected at most {arena_bytes}")
    with mmap.mmap(wire.ARENA, arena_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) as arena:
        arena[: len(packed)] = packed
    return len(packed)


if __name__ == "__main__":
    main()
