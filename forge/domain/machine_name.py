"""Tells two machines apart by their names. It imports nothing heavy, so that an audit stays quick."""

from typing import NamedTuple


class MachineName(NamedTuple):
    """What names a machine."""

    gpu_uuid: str | None
    """UUID of the GPU; None without one, and where it isn't known."""
    host_sha256: str


def is_same_machine(first: MachineName, second: MachineName) -> bool:
    """Return True for one GPU, or for one host if there is no GPU or its UUID isn't known."""
    if first.gpu_uuid and second.gpu_uuid:
        return first.gpu_uuid == second.gpu_uuid
    return first.host_sha256 == second.host_sha256
