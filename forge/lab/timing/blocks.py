"""Groups rounds into blocks and drops disturbed blocks, for all sides alike.

The device's state is read before and after each block. A block is disturbed if clocks were throttled from outside, or
if a foreign process used the device. The measured times have no influence on this.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from forge.domain.device import Device, DeviceState, shared, throttled
from forge.errors import EnvironmentUnfit
from forge.platforms.nvml import sample

ROUNDS = 6
"""Number of rounds in a block. Chosen; a disturbance drops a whole block, and each block costs two readings of the
device."""


class Blocks:
    """The rounds of one process pair, collected as they come."""

    def __init__(self, device: Device | None) -> None:
        self._device = device
        self._waiting: list[dict[str, int]] = []
        self._before = self._state()
        self.rounds: list[dict[str, int]] = []
        """Rounds of the undisturbed blocks, each with the nanoseconds by side."""
        self.states: list[DeviceState] = [self._before] if self._before is not None else []
        self.count = 0
        self.dropped = 0
        self.reasons: set[str] = set()

    def add(self, measured: dict[str, int]) -> None:
        """Add one round, in which every side was measured."""
        self._waiting.append(measured)
        if len(self._waiting) == ROUNDS:
            self.close()

    def close(self) -> None:
        """End the current block, if it has a round."""
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


def require_few_dropped(blocks: Sequence[Blocks], most_dropped: float) -> None:
    """Raise EnvironmentUnfit if too many blocks were dropped, or all blocks of one pair."""
    dropped, count = sum(one.dropped for one in blocks), sum(one.count for one in blocks)
    if dropped <= most_dropped * count and all(one.rounds for one in blocks):
        return
    why = "; ".join(sorted({reason for one in blocks for reason in one.reasons}))
    raise EnvironmentUnfit(
        f"{dropped} of {count} blocks can't be used ({why}): no verdict on this device now",
        hint="end what else runs on the GPU, let it cool, and measure again",
    )


def disturbances(before: DeviceState | None, after: DeviceState | None, *, own_pids: set[int]) -> tuple[str, ...]:
    """Return what disturbed the device between two moments; nothing if the driver can't report its state."""
    if before is None or after is None:
        return ()
    held = tuple(f"clocks held back: {reason}" for reason in throttled(before, after))
    others = shared(before, after, own_pids)
    return (*held, *(f"process {pid} on the device" for pid in others))


def descendants() -> set[int]:
    """Return the process ids of this process and its descendants."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    family, has_grown = {os.getpid()}, True
    while has_grown:
        children = {pid for pid, parent in parents.items() if parent in family} - family
        family, has_grown = family | children, bool(children)
    return family
