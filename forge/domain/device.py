"""One GPU: its names, its state before and after a measurement, and the highest rates that were measured on it."""

from collections.abc import Set as AbstractSet
from typing import Annotated, Literal, get_args

from pydantic import Field

from forge.domain.digest import Value

Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]

SlowdownReason = Literal[
    "gpu_idle",
    "application_clocks",
    "software_power_cap",
    "hardware_slowdown",
    "sync_boost",
    "software_thermal",
    "hardware_thermal",
    "hardware_power_brake",
    "display_clock",
    "unknown",
]
"""Reason why a clock runs below its maximum, in the order of NVML's bits. `unknown` is a bit without a name here."""

SLOWDOWN_REASONS: tuple[SlowdownReason, ...] = get_args(SlowdownReason)[:-1]
HARMLESS: frozenset[SlowdownReason] = frozenset({"gpu_idle", "application_clocks", "software_power_cap"})
"""Slowdown reasons that don't disturb a measurement. An idle GPU lowers its clock; application clocks and the power
cap are settings of the card, the same for every program. All other reasons come from outside and go away."""


class Device(Value):
    """One GPU of this machine, by the names that the driver's tools and the system give it."""

    index: Annotated[int, Field(ge=0)]
    """Index in nvidia-smi's list, from 0."""
    uuid: Annotated[str, Field(pattern=r"^(GPU|MIG)-[0-9A-Za-z-/]+$")]
    """UUID. Forge sets CUDA_VISIBLE_DEVICES to it, so that a process sees only this GPU."""
    node: Annotated[str, Field(pattern=r"^/dev/nvidia[0-9]+$")]
    """Device file: /dev/nvidiaN, where N is the driver's minor number. N may differ from the index."""


class DeviceState(Value):
    """The state that a GPU and its host reported at one moment. None: the driver doesn't report the value."""

    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    slowdown: tuple[SlowdownReason, ...]
    """Reasons why the clocks run below their maximum; empty if there is none."""
    utilisation: Share | None
    """Share of the last sampling period (1/6 to 1 s) in which a kernel ran."""
    compute_pids: tuple[int, ...]
    """Ids of the processes with a CUDA context on the device, as the driver numbers them."""
    memory_used_bytes: Annotated[int, Field(ge=0)] | None
    host_load: Annotated[float, Field(ge=0)]
    """Average number of runnable processes of the host over the last minute."""
    host_busy_s: Annotated[float, Field(ge=0)]
    """Processor seconds of the host since it started, idle ones included."""
    host_stolen_s: Annotated[float, Field(ge=0)]
    """Processor seconds, out of these, that a hypervisor gave to another virtual machine."""


def throttled(before: DeviceState, after: DeviceState) -> tuple[SlowdownReason, ...]:
    """Return the reasons for low clocks before or after a measurement, without the harmless ones."""
    seen = {*before.slowdown, *after.slowdown} - HARMLESS
    return tuple(reason for reason in get_args(SlowdownReason) if reason in seen)


def shared(before: DeviceState, after: DeviceState, own_pids: AbstractSet[int]) -> tuple[int, ...]:
    """Return the ids of other programs' processes with a context on the device, before or after a measurement.

    `own_pids` are process ids of the host, as the driver gives them. Inside a container Forge's own ids may differ
    from these. There, sample while no process of Forge runs, and pass an empty set.
    """
    return tuple(sorted({*before.compute_pids, *after.compute_pids} - own_pids))


PROTOCOL_VERSION = 1
"""Version of the calibration: what `Ceilings` measures, and how. Ceilings of another version are measured again."""


class Ceilings(Value):
    """The highest rates measured on one processor. No honest kernel exceeds them.

    Each is the best of many measurements on random data. Bytes read and bytes written both count. None, or no entry:
    not measured on this platform.
    """

    protocol: Annotated[int, Field(ge=1)] = PROTOCOL_VERSION
    copy_bytes_per_s: Positive
    """Rate of a copy between buffers that no cache holds: bytes read plus bytes written."""
    read_bytes_per_s: Positive | None
    write_bytes_per_s: Positive | None
    cached_bytes_per_s: Positive | None
    """Rate of a copy whose buffers fit in half of the last-level cache, without the time of its launches."""
    flop_per_s: dict[str, Positive]
    """Element type -> multiplications plus additions per second in a matrix product. `tf32` is fp32 data in tf32
    mode."""
    launch_ns: Positive | None
    """Time of one empty kernel in a graph of many that run one after the other."""
    cache_bytes: Annotated[int, Field(ge=0)] | None
    """Size of the last-level cache."""
    multiprocessors: Annotated[int, Field(ge=1)] | None

    @property
    def memory_bytes_per_s(self) -> float:
        """The highest of the rates to and from memory: copy, read or write."""
        return max(self.copy_bytes_per_s, self.read_bytes_per_s or 0.0, self.write_bytes_per_s or 0.0)
