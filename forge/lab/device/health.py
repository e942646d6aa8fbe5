"""Checks after each candidate that a GPU still works: a known computation, in a trusted process, with a time limit.

The process, `python -m forge.lab.device.health [UUID]`, uses only the driver (no torch). It makes a context, loads
one kernel, and reads back what every thread wrote. This shows an error that outlives a candidate, and a device that
fell off the bus or doesn't answer.
"""

import ctypes
import subprocess
import sys
from contextlib import suppress
from typing import assert_never

from forge.domain.device import Device
from forge.domain.digest import Value
from forge.errors import EnvironmentUnfit

LIMIT_S = 20.0
"""Seconds after which a device that hasn't answered counts as hung. Chosen; a driver's start takes some seconds on a
machine with many GPUs."""
_GIVE_UP_S = 2.0
"""Seconds to wait for the end of a killed probe. Chosen; one that still lives then waits for a dead device."""
WORDS = 2**22
"""Number of words that the kernel writes. They take 16 MiB, which every supported GPU has. Chosen; the host computes
and compares as many."""
THREADS = 256
"""Number of threads in a block. Chosen: every GPU runs blocks of up to 1024, and 256 divides `WORDS`."""
FACTOR, ADDEND = 1664525, 1013904223
"""Factor and addend of a linear congruence modulo 2^32 (Press et al., Numerical Recipes, section 7.1), which makes
each word different."""
KERNEL = f"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry mix(.param .u64 out, .param .u32 n)
{{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [out];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p bra DONE;
  mad.lo.u32 %r5, %r4, {FACTOR}, {ADDEND};
  mul.wide.u32 %rd1, %r4, 4;
  cvta.to.global.u64 %rd2, %rd0;
  add.u64 %rd3, %rd2, %rd1;
  st.global.u32 [%rd3], %r5;
DONE:
  ret;
}}
"""


class Healthy(Value):
    """The device computed what was expected."""


class Faulty(Value):
    """The device answered with an error, or wrongly."""

    detail: str


class Hung(Value):
    """The device didn't answer in time."""

    limit_s: float


Health = Healthy | Faulty | Hung


def check_health(device: Device) -> Health:
    """Run the known computation on a device."""
    return watch([sys.executable, "-m", "forge.lab.device.health", device.uuid], limit_s=LIMIT_S)


def watch(command: list[str], *, limit_s: float) -> Health:
    """Run a probe: it ends with status 0, or says what is wrong on stderr, or is abandoned."""
    probe = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _, said = probe.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        probe.kill()
        if probe.stderr is not None:
            probe.stderr.close()
        with suppress(subprocess.TimeoutExpired):
            probe.wait(_GIVE_UP_S)  # a process that waits for a dead device can't be killed
        return Hung(limit_s=limit_s)
    if probe.returncode == 0:
        return Healthy()
    detail = (said.strip().splitlines() or [f"the probe ended with status {probe.returncode}"])[-1]
    return Faulty(detail=detail[:300])


def require_health(device: Device) -> None:
    """Raise EnvironmentUnfit, with the next step, unless the device is healthy."""
    health = check_health(device)
    match health:
        case Healthy():
            return
        case Faulty():
            found = f"is faulty ({health.detail})"
        case Hung():
            found = f"gave no answer in {health.limit_s:g} s"
        case _:
            assert_never(health)
    raise EnvironmentUnfit(
        f"GPU {device.uuid!r} {found} after a candidate ran: expected a known computation to come out right",
        hint=f"dmesg | grep Xid; nvidia-smi --gpu-reset -i {device.index}, or restart the machine; then try again",
    )


class _Driver:
    """The few calls of the CUDA driver that the probe needs; any error ends it."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as missing:
            raise SystemExit(f"no CUDA driver: {missing}") from missing

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver; raise SystemExit with its error."""
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(status, ctypes.byref(text))
            said = text.value.decode() if text.value else f"error {status}"
            raise SystemExit(f"{name}: {said}")


def _find(driver: _Driver, uuid: str | None) -> ctypes.c_int:
    count, device, raw = ctypes.c_int(), ctypes.c_int(), (ctypes.c_ubyte * 16)()
    driver.call("cuDeviceGetCount", ctypes.byref(count))
    for index in range(count.value):
        driver.call("cuDeviceGet", ctypes.byref(device), index)
        driver.call("cuDeviceGetUuid", ctypes.byref(raw), device)
        if uuid is None or uuid.removeprefix("GPU-").replace("-", "") == bytes(raw).hex():
            return device
    raise SystemExit(f"CUDA shows no GPU {uuid or ''}".rstrip())


def compute(uuid: str | None) -> bytes:
    """Return the device's WORDS results of the known computation, as little-endian 32-bit integers.

    Without a UUID it asks the first GPU. Raises SystemExit with the driver's error.
    """
    driver = _Driver()
    driver.call("cuInit", 0)
    device, context, module, function = _find(driver, uuid), *(ctypes.c_void_p() for _ in range(3))
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(KERNEL.encode()))
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(b"mix"))
    memory, words, wrote = ctypes.c_uint64(), ctypes.c_uint32(WORDS), ctypes.create_string_buffer(WORDS * 4)
    driver.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(WORDS * 4))
    given = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(words))
    sizes = (*(ctypes.c_uint(size) for size in (WORDS // THREADS, 1, 1, THREADS, 1, 1)), ctypes.c_uint(0))
    driver.call("cuLaunchKernel", function, *sizes, None, given, None)
    driver.call("cuCtxSynchronize")
    driver.call("cuMemcpyDtoH_v2", wrote, memory, ctypes.c_size_t(WORDS * 4))
    with suppress(SystemExit):
        driver.call("cuMemFree_v2", memory)
    return wrote.raw


def expected() -> bytes:
    """Return the host's result of the known computation."""
    import numpy as np

    return (np.arange(WORDS, dtype=np.uint32) * np.uint32(FACTOR) + np.uint32(ADDEND)).astype("<u4").tobytes()


def main() -> None:
    """Compute and compare; a wrong result is the last line on stderr."""
    if compute(sys.argv[1] if len(sys.argv) > 1 else None) != expected():
        raise SystemExit("the device computed wrong values without an error")


if __name__ == "__main__":
    main()
