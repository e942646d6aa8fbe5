"""The GPU that a command means, by --device or by CUDA_VISIBLE_DEVICES.

One process works with one GPU: once chosen, it is the only one that CUDA shows to this process and its children.
"""

import os

from forge.domain.device import Device
from forge.errors import UnknownName, UsageError
from forge.platforms.cuda import choose, devices

PLACE_VARIABLE = "FORGE_ON"
"""Environment variable with the address of the machine that jobs run on; empty: this machine."""
VARIABLE = "CUDA_VISIBLE_DEVICES"
"""Environment variable that says which GPUs CUDA shows to a process."""


def devices_named(names: list[str]) -> list[Device]:
    """Return the GPUs with these names; raise UnknownName if one is missing, UsageError if one is named twice."""
    known = devices()
    named: list[Device] = []
    for name in names:
        device = choose(known, name)
        if device is None:
            raise UnknownName("GPU", name, [one.uuid for one in known])
        if device in named:
            raise UsageError(f"GPU {name!r} is named twice: expected each GPU once")
        named.append(device)
    return named


def chosen_device(named: str | None = None) -> Device | None:
    """Return the GPU that is meant, by name or else by the environment; None without one. Raise UnknownName.

    Raises UsageError for a name where FORGE_ON sends jobs to another machine.
    """
    if named is not None and os.environ.get(PLACE_VARIABLE):
        raise UsageError(
            f"--device {named!r} names a GPU of this machine, but {PLACE_VARIABLE} sends jobs to "
            f"{os.environ[PLACE_VARIABLE]!r}: expected one of the two; leave --device out, or unset {PLACE_VARIABLE}",
            hint=f"unset {PLACE_VARIABLE}",
        )
    device = choose(devices(), named if named is not None else os.environ.get(VARIABLE))
    if named is not None and device is None:
        raise UnknownName("GPU", named, [one.uuid for one in devices()])
    if device is not None:
        os.environ[VARIABLE] = device.uuid
    return device
