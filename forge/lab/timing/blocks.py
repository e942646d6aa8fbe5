"""Rounds in blocks, each with the device's state before and after; a block that was disturbed counts for no side.

The rule looks at the device alone, never at a time that was measured: clocks held back from outside, or somebody
else's process on the device.
"""

import os
from pathlib import Path

from forge.domain.device import Device, DeviceState, shared, throttled
from forge.platforms.nvml import sample

ROUNDS = 6
"""In a block."""


class Blocks:
    """One process pair's rounds, as they come."""

    def __init__(self, device: Device | None) -> None:
        self._device = device
        self._waiting: list[dict[str, int]] = []
        self._before = self._state()
        self.rounds: list[dict[str, int]] = []
        """Those of blocks that count."""
        self.states: list[DeviceState] = [self._before] if self._before is not None else []
        self.count = 0
        self.dropped = 0
        self.reasons: set[str] = set()

    def add(self, measured: dict[str, int]) -> None:
        """One round, every side measured."""
        self._waiting.append(measured)
        if len(self._waiting) == ROUNDS:
            self.close()

    def close(self) -> None:
        """End the block, if one was begun."""
        if not self._waiting:
            return
        after = self._state()
        reasons = disturbances(self._before, after, own_pids=descendants())
        self.count += 1
        if reasons:
            self.dropped += 1
            self.reasons.update(reasons)
        else:
            self.rounds += self._waiting
        self._waiting = []
        self._before = after
        if after is not None:
            self.states.append(after)

    def _state(self) -> DeviceState | None:
        return sample(self._device) if self._device is not None else None


def disturbances(before: DeviceState | None, after: DeviceState | None, *, own_pids: set[int]) -> tuple[str, ...]:
    """What came from outside between two moments; nothing where the driver can't be asked."""
    if before is None or after is None:
        return ()
    held = tuple(f"clocks held back: {reason}" for reason in throttled(before, after))
    others = shared(before, after, own_pids)
    return (*held, *(f"process {pid} on the device" for pid in others))


def descendants() -> set[int]:
    """The processes that descend from this one, and itself."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    family, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family, grown = family | more, bool(more)
    return family
