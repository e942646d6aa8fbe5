"""Reads a GPU's state from its driver through NVML, without a CUDA context and without changing settings.

If NVML, its Python package or a value is missing, the result is None, never an exception. Source of names, units and
mask bits: NVIDIA, NVML API reference, "Device Queries" and `nvmlClocksEventReasons`.
"""

import os
from collections.abc import Callable, Container
from typing import Any, NamedTuple, TypeVar

from forge.domain.device import SLOWDOWN_REASONS, Device, DeviceState, SlowdownReason
from forge.platforms.host_facts import file_text

Answer = TypeVar("Answer")
NAMED_BITS = 2 ** len(SLOWDOWN_REASONS) - 1
"""Mask of the slowdown bits that have a name here."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
"""Unit of the times in /proc/stat, in ticks for each second."""


class DeviceMemory(NamedTuple):
    """A device's memory in bytes: what is in use, and what it has."""

    used_bytes: int
    total_bytes: int


def sample(device: Device) -> DeviceState | None:
    """Return the current state of a device and of its host; None if NVML isn't available."""
    return _asked(lambda nvml: _sample(nvml, nvml.nvmlDeviceGetHandleByUUID(device.uuid)))


def memory_of(device: Device) -> DeviceMemory | None:
    """Return how much of a device's memory is in use, by all programs together."""

    def asked(nvml: Any) -> DeviceMemory:  # Any: NVML's binding has no types
        found = nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByUUID(device.uuid))
        return DeviceMemory(used_bytes=found.used, total_bytes=found.total)

    return _asked(asked)


def device_bytes(pids: Container[int]) -> int:
    """Return the memory that these processes hold on all GPUs of this machine. Unknown amounts count as zero."""

    def held(nvml: Any) -> int:  # Any: NVML's binding has no types
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        running = [process for handle in handles for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
        return sum(process.usedGpuMemory or 0 for process in running if process.pid in pids)

    return _asked(held) or 0


def _asked(question: Callable[[Any], Answer]) -> Answer | None:  # Any: NVML's binding has no types
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        return question(pynvml)
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def decode_slowdown(mask: int) -> tuple[SlowdownReason, ...]:
    """Return the names of NVML's bits; `unknown` for bits without a name here."""
    named = tuple(reason for bit, reason in enumerate(SLOWDOWN_REASONS) if mask >> bit & 1)
    return (*named, "unknown") if mask & ~NAMED_BITS else named


# Any: NVML's binding has no types
def _sample(nvml: Any, handle: Any) -> DeviceState:
    def ask(name: str, *arguments: int) -> Any:
        """Return the answer, or None if this device or driver doesn't support the question."""
        question: Callable[..., Any] | None = getattr(nvml, name, None)
        if question is None:
            return None
        try:
            return question(handle, *arguments)
        except nvml.NVMLError:
            return None

    power_mw, rates, memory = ask("nvmlDeviceGetPowerUsage"), ask("nvmlDeviceGetUtilizationRates"), None
    memory = ask("nvmlDeviceGetMemoryInfo")
    mask = ask("nvmlDeviceGetCurrentClocksEventReasons")
    if mask is None:  # the question's name before driver 535
        mask = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    busy_s, stolen_s = host_processor_s(file_text("/proc/stat"))
    return DeviceState(
        sm_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        memory_clock_mhz=ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        power_w=None if power_mw is None else power_mw / 1000,
        temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        slowdown=decode_slowdown(mask or 0),
        utilisation=None if rates is None else rates.gpu / 100,
        compute_pids=tuple(sorted(process.pid for process in ask("nvmlDeviceGetComputeRunningProcesses") or ())),
        memory_used_bytes=None if memory is None else memory.used,
        host_load=os.getloadavg()[0],
        host_busy_s=busy_s,
        host_stolen_s=stolen_s,
    )


def host_processor_s(stat: str) -> tuple[float, float]:
    """Return all processors' seconds since start, and the stolen ones: proc(5), first line of /proc/stat."""
    fields = stat.partition("\n")[0].split()[1:]
    ticks = [int(field) for field in fields if field.isdecimal()][
        :8
    ]  # the guest times after these are already part of user time
    return sum(ticks) / TICKS_PER_S, (ticks[7] if len(ticks) == 8 else 0) / TICKS_PER_S
