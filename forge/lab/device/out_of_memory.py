"""Tells a candidate that takes too much of a GPU's memory from one that found too little of it."""

from forge.domain.device import Device
from forge.domain.verdict import Rejected, Verdict
from forge.errors import EnvironmentUnfit
from forge.platforms.nvml import memory_of

MOST_USED_SHARE = 1 / 8
"""Share of a GPU's memory that may be in use while no candidate runs. Chosen; a driver and a launcher that waits take
about a gigabyte, and the operands of one call may take an eighth."""


def lacks_memory(verdict: Verdict) -> bool:
    """Return whether a candidate was refused since memory ran out."""
    return isinstance(verdict, Rejected) and verdict.reason.code == "OUT_OF_MEMORY"


def require_room(device: Device) -> None:
    """Raise EnvironmentUnfit if other programs hold much of the memory of a GPU on which no candidate runs."""
    memory = memory_of(device)
    if memory is not None and memory.used_bytes > MOST_USED_SHARE * memory.total_bytes:
        used_gib, total_gib = memory.used_bytes / 2**30, memory.total_bytes / 2**30
        raise EnvironmentUnfit(
            f"no verdict: {used_gib:.1f} of {total_gib:.1f} GiB of GPU {device.uuid!r} are in use while no candidate "
            "runs there",
            hint="end the other programs (nvidia-smi lists them), and verify again",
        )
