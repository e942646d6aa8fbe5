"""One GPU: which it is, what state it was in around a measurement, and how fast it was ever seen to be."""

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
"""Why a clock is lower than it could be, in the order of NVML's bits; `unknown` is a bit that has no name yet."""

SLOWDOWN_REASONS: tuple[SlowdownReason, ...] = get_args(SlowdownReason)[:-1]
HARMLESS: frozenset[SlowdownReason] = frozenset({"gpu_idle", "application_clocks", "software_power_cap"})
"""No clock is held down while idle by anything but idleness; application clocks and the power cap are settings of the
card, the same for whatever runs on it. The rest comes from outside and passes."""


class Device(Value):
    """One GPU of this machine, by the names that the driver's tools and the system give it."""

    index: Annotated[int, Field(ge=0)]
    """Its place in nvidia-smi's list."""
    uuid: Annotated[str, Field(pattern=r"^(GPU|MIG)-[0-9A-Za-z-/]+$")]
    """What CUDA_VISIBLE_DEVICES is set to, so that a process sees this one and no other."""
    node: Annotated[str, Field(pattern=r"^/dev/nvidia[0-9]+$")]
    """The device file: /dev/nvidiaN, where N is the driver's minor number and needn't be the index."""


class DeviceState(Value):
    """What a GPU and its host said of themselves at one moment. None: the driver doesn't report it."""

    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    slowdown: tuple[SlowdownReason, ...]
    """Why the clocks are lower than they could be; empty where nothing holds them down."""
    utilisation: Share | None
    """Share of the last sampling period (1/6 to 1 s) in which a kernel ran."""
    compute_pids: tuple[int, ...]
    """Processes with a CUDA context on the device, as the driver numbers them."""
    memory_used_bytes: Annotated[int, Field(ge=0)] | None
    host_load: Annotated[float, Field(ge=0)]
    """Runnable processes of the host, over the last minute."""
    host_busy_s: Annotated[float, Field(ge=0)]
    """Processor seconds of the host since it started, idle ones included."""
    host_stolen_s: Annotated[float, Field(ge=0)]
    """Of these, seconds that a hypervisor gave to another machine."""


def throttled(before: DeviceState, after: DeviceState) -> tuple[SlowdownReason, ...]:
    """What held the clocks down around a measurement, apart from the card's own settings; empty if nothing did."""
    seen = {*before.slowdown, *after.slowdown} - HARMLESS
    return tuple(reason for reason in get_args(SlowdownReason) if reason in seen)


def shared(before: DeviceState, after: DeviceState, own_pids: AbstractSet[int]) -> tuple[int, ...]:
    """Processes with a context on the device that aren't ours, at either moment.

    `own_pids` are numbers as the driver gives them: those of the host. Inside a container they may differ from ours;
    there, sample while none of ours runs, with no own pids.
    """
    return tuple(sorted({*before.compute_pids, *after.compute_pids} - own_pids))


PROTOCOL_VERSION = 1
"""Of `Ceilings`: what is measured, and how. Ceilings of another version are measured anew."""


class Ceilings(Value):
    """The most that one processor was seen to do: rates that no honest kernel exceeds, bytes counted both ways.

    Each is the best of many on random data. None, or no entry: not measured on this platform.
    """

    protocol: Annotated[int, Field(ge=1)] = PROTOCOL_VERSION
    copy_bytes_per_s: Positive
    """As many bytes read as written, from and to memory that no cache holds."""
    read_bytes_per_s: Positive | None
    write_bytes_per_s: Positive | None
    cached_bytes_per_s: Positive | None
    """A copy whose buffers stay in half of the last-level cache, without its launches."""
    flop_per_s: dict[str, Positive]
    """Element type -> multiplications and additions of a matrix product per second; `tf32` is fp32 data in it."""
    launch_ns: Positive | None
    """An empty kernel in a graph of many, one after the other."""
    cache_bytes: Annotated[int, Field(ge=0)] | None
    """Of the last-level cache."""
    multiprocessors: Annotated[int, Field(ge=1)] | None

    @property
    def memory_bytes_per_s(self) -> float:
        """The fastest way seen to move bytes to or from memory."""
        return max(self.copy_bytes_per_s, self.read_bytes_per_s or 0.0, self.write_bytes_per_s or 0.0)
