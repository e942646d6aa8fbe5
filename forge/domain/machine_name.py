"""Tells machines apart by their names, and names workers. It imports nothing heavy, so that an audit stays quick."""

from typing import NamedTuple

NODE_DIGITS = 12
"""Number of characters of its name that an answer shows of a worker. They are 48 bits: a thousand workers have an
equal one with a chance of 2e-9."""


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


def worker_name(node: str | None, host_sha256: str) -> str:
    """Return the beginning of the name of the node that answered, or of the machine's digest if that is the head."""
    return (node or host_sha256)[:NODE_DIGITS]
